"""The loop as a user sees it: batches, streams, ends of texts, interrupts, arguments."""

import io
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from tqdm import tqdm

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.drafters.lookup import PromptLookup
from mdsd_core.decoding.drafters.ngram import NGramDrafter, WittenBellTrigram
from mdsd_core.decoding.generate import generate, streams
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import skip_layers
from mdsd_core.schemes import TopThenSampled, WithReplacement
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.shape import EAGLE, DraftTree
from mdsd_core.verifiers import UnsupportedScheme, verifier
from tests.decoding.tiny import CONTEXT, GuidedDrafter, V, cached, model, plain_greedy

PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], [3, 3]]
SEEDS = [11, 12, 13, 14]


def run(prompts=PROMPTS, seeds=SEEDS, tree=(2, 2), temperature=0.4, **options):
    options = {"max_new_tokens": 14, "eos_token_ids": (), "sampling": SamplingParams(temperature), **options}
    return generate(cached(seed=0), model(seed=1), prompts, tree, seeds=seeds, **options)


@pytest.mark.parametrize("tree", [(2, 2), (1, 1, 1, 1), (5,), EAGLE])
@pytest.mark.parametrize(
    ("scheme", "verifier", "tree_rule"),
    [
        ("with_replacement", "rrs", "node"),
        ("without_replacement", "rrs_without", "node"),
        ("with_replacement", "optimal", "path"),
    ],
)
def test_a_ragged_batch_is_what_each_prompt_gets_alone(tree, scheme, verifier, tree_rule):  # I12, A15, D7, G2
    options = {"tree": tree, "scheme": scheme, "verifier": verifier, "tree_rule": tree_rule}
    batch = run(**options)
    assert len({tuple(r.accepted for r in batch.metrics.of_request(i)) for i in range(4)}) > 1  # ragged indeed
    for i in range(4):
        alone = run([PROMPTS[i]], [SEEDS[i]], **options)
        assert alone.tokens[0] == batch.tokens[i]
        assert alone.kinds[0] == batch.kinds[i]
        np.testing.assert_allclose(alone.logprobs[0], batch.logprobs[i], rtol=0, atol=1e-9)
    turned = run(PROMPTS[::-1], SEEDS[::-1], **options)
    assert turned.tokens[::-1] == batch.tokens


@pytest.mark.parametrize("name", ["skipping", "ngram", "lookup"])
def test_every_drafter_drafts_for_each_row_as_if_alone(name):
    """A draft that skips layers of the target and has its own cache; a trigram; look-up; rows leave one by one."""
    prompts, eos = [[1, 2, 3, 1, 2], [4], [5, 6, 5, 6, 5]], [7]
    target = model(seed=0)
    texts = [plain_greedy(target, prompt, 20) for prompt in prompts]

    def result(some, seeds):
        drafter = {
            "skipping": lambda: skip_layers(target, [0]),
            "ngram": lambda: NGramDrafter(WittenBellTrigram.fit(texts, V)),
            "lookup": lambda: PromptLookup(V),
        }[name]()
        rule = ("deterministic", "deterministic") if name == "lookup" else ("with_replacement", "rrs")
        return generate(
            target, drafter, some, (2, 1), *rule, sampling=SamplingParams(0.5), max_new_tokens=20, seeds=seeds,
            eos_token_ids=eos,
        )  # fmt: skip

    batch = result(prompts, [1, 2, 3])
    assert batch.metrics.accepted > 0
    assert [result([prompt], [seed]).tokens[0] for prompt, seed in zip(prompts, [1, 2, 3])] == batch.tokens


def test_texts_of_different_length_leave_the_batch_one_by_one():
    free = run(max_new_tokens=30)
    eos = [max(set(free.tokens[0]), key=free.tokens[0].count)]
    batch = run(max_new_tokens=30, eos_token_ids=eos)
    assert len({len(tokens) for tokens in batch.tokens}) > 1
    for i in range(4):
        alone = run([PROMPTS[i]], [SEEDS[i]], max_new_tokens=30, eos_token_ids=eos)
        assert batch.tokens[i] == alone.tokens[0]
        assert batch.finish_reasons[i] == ("eos" if batch.tokens[i][-1] in eos else "length")
        assert not set(eos) & set(batch.tokens[i][:-1])


def test_streaming_yields_what_is_returned():
    events = []
    result = run(stream=events.append)
    for i in range(4):
        mine = [event for event in events if event.request == i]
        assert [t for event in mine for t in event.tokens] == result.tokens[i]
        assert [k for event in mine for k in event.kinds] == result.kinds[i]
        assert [event.finish_reason for event in mine][-1] == result.finish_reasons[i]
        assert all(event.finish_reason is None for event in mine[:-1])
    assert sum(len(event.tokens) for event in events) == result.metrics.emitted


def test_tokens_are_streamed_as_soon_as_they_are_committed():
    """One event after each target pass, before the next one, with what the cache has just been given."""
    scorer, passes, seen = cached(seed=0), [], []
    feed = scorer.feed
    scorer.feed = lambda blocks: passes.append(1) or feed(blocks)

    def stream(event):
        seen.append((len(passes), len(event.tokens), None if event.finish_reason else scorer.cached(0)))

    result = generate(
        scorer, model(seed=1), PROMPTS[:1], (2, 2), seeds=1, max_new_tokens=14, eos_token_ids=(), stream=stream
    )
    assert [count for count, _, _ in seen] == [*range(1, result.metrics.target_calls + 1)]
    committed = len(PROMPTS[0])
    for _, tokens, cached_tokens in seen[:-1]:
        committed += tokens
        assert cached_tokens == committed - 1


def test_nothing_is_computed_twice():
    """Behind the prompts, the target is fed the token of the last round and the drafts; the draft model at most two
    committed tokens (the second after full acceptance, when the last draft was never fed), then a level a pass."""
    target, draft, fed = cached(seed=0), cached(seed=0), {"target": [], "draft": []}
    for name, scorer in (("target", target), ("draft", draft)):
        feed = scorer.feed
        scorer.feed = lambda blocks, name=name, feed=feed: fed[name].append(blocks) or feed(blocks)
    result = generate(
        target, ModelDrafter(draft), PROMPTS, (2, 2), sampling=SamplingParams(2.0), draft_sampling=SamplingParams(0.5),
        seeds=SEEDS, max_new_tokens=30, eos_token_ids=(),
    )  # fmt: skip
    assert {record.accepted for record in result.metrics.rounds} == {0, 1, 2}
    assert all(len(block.tokens) == block.scored for blocks in fed["target"][1:] for block in blocks)
    roots, levels = fed["draft"][2::2], fed["draft"][3::2]
    assert {len(block.tokens) for blocks in roots for block in blocks} == {1, 2}
    assert all(len(block.tokens) == block.scored <= 2 for blocks in levels for block in blocks)


def test_an_interrupt_keeps_what_was_generated():
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == 5:
            raise KeyboardInterrupt

    result = run(stream=stop)
    assert result.finish_reasons == ["interrupted"] * 4
    whole = run()
    for got, want in zip(result.tokens, whole.tokens):
        assert got
        assert got == want[: len(got)]


def test_logprobs_are_the_targets():  # B16
    causal_lm = model(seed=0)
    result = run([PROMPTS[0]], [3])
    tokens = [*PROMPTS[0], *result.tokens[0]]
    with torch.inference_mode():
        logits = causal_lm(torch.tensor([tokens])).logits[0]
    want = torch.log_softmax(logits / 0.4, -1)
    for i, value in enumerate(result.logprobs[0]):
        at = len(PROMPTS[0]) + i
        assert value == pytest.approx(float(want[at - 1, tokens[at]]), abs=1e-9)


def test_an_uneven_number_of_drafts_by_depth_and_any_scheme():
    tree = DraftTree.from_children({(): 3, (0,): 1, (1,): 2})
    for scheme in (WithReplacement(3), WithReplacement, "with_replacement"):
        assert len(run(tree=tree, scheme=scheme).tokens[0]) == 14
    with pytest.raises(ValueError, match="draws 3 drafts, but a node of the tree has 1 places"):
        run(tree=tree, scheme=TopThenSampled(1, 2))


def test_long_prompts_are_fed_in_pieces(monkeypatch):
    from mdsd_core.decoding import scoring

    whole = run([PROMPTS[2] * 4, PROMPTS[0]], [1, 2])
    feed = scoring.prefill
    for module in ("loop", "drafters.base"):
        monkeypatch.setattr(f"mdsd_core.decoding.{module}.prefill", lambda s, c: feed(s, c, chunk=5))
    pieces = run([PROMPTS[2] * 4, PROMPTS[0]], [1, 2])
    assert pieces.tokens == whole.tokens
    assert pieces.metrics.prefill_calls > 4 > whole.metrics.prefill_calls == 0


def test_at_temperature_0_drafts_may_be_the_top_of_an_unwarped_draft():
    greedy = SamplingParams(temperature=0)
    options = {"sampling": greedy, "scheme": "deterministic", "verifier": "deterministic", "tree": (3, 2)}
    wide = run(**options, draft_sampling=SamplingParams())
    narrow = run(**options)
    plain = generate(cached(seed=0), None, PROMPTS, sampling=greedy, max_new_tokens=14, eos_token_ids=())
    assert wide.tokens == narrow.tokens == plain.tokens
    assert wide.metrics.accepted >= narrow.metrics.accepted
    assert wide.metrics.drawn > narrow.metrics.drawn


def test_the_progress_bar_of_a_batch(monkeypatch):
    """It counts the tokens of all prompts, round by round, and changes nothing."""
    bars = []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(file=io.StringIO(), mininterval=0.0, miniters=1, **options)
            self.steps = []
            bars.append(self)

        def update(self, n=1):
            self.steps.append(n)
            return super().update(n)

    monkeypatch.setattr(sys.modules[generate.__module__], "tqdm", Bar)
    result = run(progress=True)
    assert result.tokens == run().tokens
    shown, hidden = bars
    assert hidden.disable
    assert shown.total == shown.n == result.metrics.emitted == 4 * 14
    assert len(shown.steps) == len(result.metrics.rounds)
    assert "56/56" in shown.fp.getvalue()


def test_seeds():
    assert len(streams(None, 3)) == 3
    with pytest.raises(ValueError, match="seeds must be"):
        streams([1, 2], 3)
    assert run(seeds=5).tokens == run(seeds=5).tokens
    same = run([[1, 2]] * 2, seeds=5, temperature=1.0)
    assert same.tokens[0] != same.tokens[1]  # G4: independent streams


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": []}, "prompts"),
        ({"prompts": [[]]}, r"prompts\[0\]"),
        ({"prompts": ["text"]}, r"prompts\[0\]"),
        ({"prompts": [[V]]}, f"outside \\[0, {V}\\)"),
        ({"prompts": [[1] * CONTEXT]}, "no room in a context"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"tree_rule": "magic"}, "tree_rule must be one of"),
        ({"tree_rule": "path"}, "takes a verifier that selects one draft"),
        ({"scheme": "magic"}, "scheme must be one of"),
        ({"tree": (0,)}, "branching"),
    ],
)
def test_bad_arguments_are_named(change, message):
    options = {"prompts": [[1]], "seeds": None, **change}
    with pytest.raises(ValueError, match=message):
        run(**options)


def test_a_rule_that_is_not_lossless_is_refused_before_any_pass():
    scorer = cached()
    with pytest.raises(UnsupportedScheme, match=r"'rrs' is not lossless .*these verifiers are: .*rrs_without"):
        generate(scorer, ModelDrafter(cached(seed=1)), [[1]], (2,), scheme="without_replacement", verifier="rrs")
    assert scorer.cached(0) == 0


def test_settings_are_checked_when_made_and_then_fixed():
    settings = LoopSettings(DraftTree.from_branching((2,)), WithReplacement, tree_rule("node", verifier("rrs")))
    with pytest.raises(FrozenInstanceError):
        settings.trim = True
    with pytest.raises(UnsupportedScheme, match="'rrs_without' is not lossless"):
        replace(settings, rule=tree_rule("node", verifier("rrs_without")))


@pytest.mark.parametrize(("target", "drafter"), [("smollm2-135m", None), (model(), "tiny-random-draft"), (7, None)])
def test_names_are_no_models(target, drafter):
    with pytest.raises(TypeError, match=r"must be models, got .*load_model\(name\)"):
        generate(target, drafter, [[1]])


def test_a_model_that_drafts_for_itself_needs_two_caches():
    scorer = cached()
    for drafter in (scorer, ModelDrafter(scorer)):
        with pytest.raises(ValueError, match="a cache each"):
            generate(scorer, drafter, [[1]])
    causal_lm = model()
    assert generate(causal_lm, causal_lm, [[1]], (1, 1), max_new_tokens=6, seeds=0).metrics.alpha_node > 1 - 1e-12


def test_vocabularies_must_agree():  # H5: drafts from a vocabulary of their own would need a map
    with pytest.raises(ValueError, match="one vocabulary, got 13 and 12"):
        generate(cached(), model(vocab_size=12), [[1]])


def test_plain_decoding_without_a_drafter():
    causal_lm = model()
    result = generate(
        causal_lm, None, [[1, 2]], sampling=SamplingParams(temperature=0), max_new_tokens=6, eos_token_ids=()
    )
    assert result.tokens[0] == plain_greedy(causal_lm, [1, 2], 6)[2:]
    assert result.kinds[0] == ["bonus"] * 6
    assert result.metrics.block_efficiency == 1.0


def test_the_guided_drafter_of_the_tests_is_lossless_too():
    text = plain_greedy(model(), [1], 10)
    result = generate(cached(), GuidedDrafter([text]), [[1]], (2,), max_new_tokens=5, seeds=0, eos_token_ids=())
    assert len(result.tokens[0]) == 5
