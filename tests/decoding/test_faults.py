"""The faults that users of speculative decoding met, groups A and D to I: each kind must be impossible in the loop.

The table in `tests/core/verifiers/test_faults.py` says for every fault where it is tested; those of these groups that
are not here are in test_families.py, test_generate.py and test_metrics.py (named in comments), with the models (H6,
H7), on the command line (A10, D9) and with the verifiers, one by one and in batches (A13, I15). Out of scope is the map
of H5: a drafter with a vocabulary of its own is refused.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.drafters.lookup import PromptLookup
from mdsd_core.decoding.generate import generate, streams
from mdsd_core.decoding.scoring import Block, CachedModel
from mdsd_core.distributions import SamplingParams
from mdsd_core.randomness import RandomChoices
from mdsd_core.schemes import Deterministic, WithReplacement
from mdsd_core.schemes.names import scheme_family
from mdsd_core.trees.rules import NodeRule, tree_rule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import verifier, verifiers_for
from tests.decoding.oracle import Selecting, autoregressive_law, distance, enumerate_runs, law_of_rounds, make_loop
from tests.decoding.tiny import CONTEXT, GuidedDrafter, TableModel, V, cached, model, path_logits, plain_greedy

GREEDY, PLAIN = SamplingParams(temperature=0), SamplingParams()


class Constant(TableModel):
    """The same distribution everywhere."""

    def __init__(self, p, context_limit=None):
        super().__init__(len(p), 0, context_limit)
        self.always = np.asarray(p, dtype=float)

    def p(self, context):
        return self.always


def first_token_law(p, q, scheme, rule, tree=(1,), sampling=PLAIN, rule_name="node"):
    target, tree = Constant(p), DraftTree.from_branching(tree)

    def make(oracle, context):
        return make_loop(
            target,
            ModelDrafter(Constant(q)),
            [0, *context],
            oracle,
            tree,
            scheme_family(scheme),
            tree_rule(rule_name, verifier(rule)),
            sampling=sampling,
        )

    law = law_of_rounds(make, 1)
    return np.array([law[(x,)] for x in range(len(p))])


def round_outcomes(p, q, gamma, scheme="with_replacement", rule="rrs", rule_name="node"):
    """(weight, accepted, emitted tokens) of one round on a chain."""

    def run(oracle):
        loop, request = make_loop(
            Constant(p),
            ModelDrafter(Constant(q)),
            [0],
            oracle,
            DraftTree.chain(gamma),
            scheme_family(scheme),
            tree_rule(rule_name, verifier(rule) if isinstance(rule, str) else rule),
        )
        loop.step()
        return loop.records[0].accepted, tuple(request.new_tokens)

    return [(weight, *result) for weight, result in enumerate_runs(run)]


class TestDraftDistributions:
    @pytest.mark.parametrize("shift", ["p", "q"])
    def test_rows_of_another_node_change_the_law(self, shift):  # A3, E5
        """The enumeration notices a row taken from the wrong node; with the right ones the law is the target's."""

        class Shifted(NodeRule):
            def walk(self, tree, p, q, choices):
                last = len(tree) - 1

                class Rows:
                    def __init__(self, rows, wrong):
                        self.rows, self.wrong = rows, wrong

                    def __getitem__(self, node):
                        return self.rows[min(node + 1, last) if self.wrong and node + 1 in self.rows else node]

                    def __contains__(self, node):
                        return True

                if shift == "p":
                    q_rows, p_rows = q, [p[i] for i in range(len(tree))]
                    return super().walk(tree, p_rows[1:2] + p_rows[1:], q_rows, choices)
                return super().walk(tree, p, Rows(q, True), choices)

        target, draft = TableModel(3, 1), TableModel(3, 101)
        laws = []
        for rule in (NodeRule(verifier("rrs")), Shifted(verifier("rrs"))):

            def make(oracle, context, rule=rule):
                return make_loop(
                    target,
                    ModelDrafter(draft),
                    [0, *context],
                    oracle,
                    DraftTree.chain(2),
                    scheme_family("greedy"),
                    rule,
                )

            laws.append(law_of_rounds(make, 2))
        want = autoregressive_law(target.p, [0], 2, 3)
        assert distance(laws[0], want) < 1e-12
        assert distance(laws[1], want) > 1e-3

    def test_greedy_drafts_are_reported_as_one_hot(self):  # A4
        """An arg-max proposal with the softmax as its q emits (.833, .167) for p = (.5, .5); here q is one-hot too."""
        seen = []

        class Spy(NodeRule):
            def walk(self, tree, p, q, choices):
                seen.append(q[0])
                return super().walk(tree, p, q, choices)

        loop, _ = make_loop(
            Constant([0.5, 0.5]),
            ModelDrafter(Constant([0.6, 0.4])),
            [0],
            streams(0, 1)[0],
            DraftTree.chain(1),
            scheme_family("with_replacement"),
            Spy(verifier("rrs")),
            draft_sampling=GREEDY,
        )
        loop.step()
        assert seen[0].tolist() == [1.0, 0.0]

    @pytest.mark.parametrize("rule", verifiers_for(Deterministic(2)))
    def test_deterministic_children_in_any_order(self, rule):  # A8
        for q in ([0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]):
            law = first_token_law([0.5, 0.3, 0.2], q, "deterministic", rule, (2,))
            np.testing.assert_allclose(law, [0.5, 0.3, 0.2], rtol=0, atol=1e-14)

    def test_acceptance_uses_q_where_it_is_known(self):  # A9
        half = [0.5, 0.5]
        assert sum(w * a for w, a, _ in round_outcomes(half, half, 1)) == pytest.approx(1.0)
        assert sum(w * a for w, a, _ in round_outcomes(half, half, 1, "deterministic", "deterministic")) == 0.5

    def test_the_law_is_that_of_the_warped_target(self):  # A11
        logits = np.array([2.0, 1.0, 0.0])
        want = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
        p = np.exp(logits) / np.exp(logits).sum()
        law = first_token_law(p, p, "with_replacement", "rrs", (2,), SamplingParams(temperature=0.5))
        np.testing.assert_allclose(law, want, rtol=0, atol=1e-14)

    def test_filters_hold_on_every_verified_row(self):  # A12
        def run(oracle):
            loop, request = make_loop(
                Constant([0.9, 0.06, 0.04]),
                ModelDrafter(Constant([0.2, 0.4, 0.4])),
                [0],
                oracle,
                DraftTree.from_branching((2, 2)),
                scheme_family("without_replacement"),
                tree_rule("node", verifier("rrs_without")),
                sampling=SamplingParams(min_p=0.1),
                draft_sampling=SamplingParams(),
            )
            loop.step()
            return set(request.new_tokens)

        assert set().union(*(tokens for _, tokens in enumerate_runs(run))) == {0}

    def test_each_request_has_its_own_q(self):  # A15
        class Rowwise(TableModel):  # a draft that is certain of a token of the request's own
            def p(self, context):
                return np.eye(3)[context[0]]

        target = TableModel(3, 5)
        prompts = [[0], [1], [2]]
        options = {"tree": (1, 1), "seeds": [1, 2, 3], "max_new_tokens": 8}
        batch = generate(target, ModelDrafter(Rowwise(3, 0)), prompts, **options)
        for i, prompt in enumerate(prompts):
            alone = generate(
                target, ModelDrafter(Rowwise(3, 0)), [prompt], **{**options, "seeds": [options["seeds"][i]]}
            )
            assert alone.tokens[0] == batch.tokens[i]


class TestTemperatureZero:
    def test_a_draft_that_is_not_the_argmax_is_rejected(self):  # D1
        law = first_token_law([0.3, 0.5, 0.2], [0.8, 0.1, 0.1], "with_replacement", "rrs", (1,), GREEDY)
        assert law.tolist() == [0.0, 1.0, 0.0]

    def test_no_seed_changes_the_text(self):  # D2
        texts = [
            generate(cached(), model(seed=1), [[1, 2]], (2, 2), sampling=GREEDY, max_new_tokens=10, seeds=seed).tokens
            for seed in range(10)
        ]
        assert all(text == texts[0] for text in texts)

    def test_every_token_passes_a_teacher_forced_check(self):  # D5
        causal_lm = model(seed=2)
        prompt = [1, 2, 3, 4, 5, 6]
        result = generate(
            CachedModel(causal_lm),
            GuidedDrafter([plain_greedy(causal_lm, prompt, 20)]),
            [prompt],
            (1, 1, 1),
            sampling=GREEDY,
            draft_sampling=SamplingParams(),
            max_new_tokens=20,
            eos_token_ids=(),
            seeds=0,
        )
        tokens = [*prompt, *result.tokens[0]]
        for at in range(len(prompt), len(tokens)):
            assert int(path_logits(causal_lm, tokens[:at]).argmax()) == tokens[at]

    def test_what_is_guaranteed_is_said(self):  # D6
        """The law in exact arithmetic, token for token in float64 (E10); in float32 near-ties may part."""
        said = " ".join(generate.__doc__.split())
        assert "In exact arithmetic the output has the target's law" in said
        assert "in float32, runs with different trees can part at near-ties" in said

    def test_one_prompt_three_times_in_a_batch(self):  # D7
        for sampling in (GREEDY, SamplingParams(0.8)):
            result = generate(
                cached(), model(seed=1), [[1, 2, 3]] * 3, (2, 2), sampling=sampling, max_new_tokens=12, seeds=[7, 7, 7]
            )
            assert result.tokens[0] == result.tokens[1] == result.tokens[2]

    def test_sampling_stays_sampling(self):  # D8
        """On every machine, with every verifier: at temperature 1 the first token has an entropy, that of a coin."""
        for name in verifiers_for(WithReplacement(2)):
            counts = np.zeros(2)
            for choices in streams(8, 60):
                loop, request = make_loop(
                    Constant([0.5, 0.5]), ModelDrafter(Constant([0.5, 0.5])), [0], choices,
                    DraftTree.from_branching((2,)), scheme_family("with_replacement"),
                    tree_rule("node", verifier(name)),
                )  # fmt: skip
                loop.step()
                counts[request.new_tokens[0]] += 1
            assert counts.min() > 10, name  # below that with probability 1e-7


class TestBlocksTreesAndBonus:
    P, Q = (0.7, 0.3), (0.4, 0.6)

    @pytest.mark.parametrize(("p", "q"), [(P, Q), ((0.5, 0.5), (0.1, 0.9))])
    def test_block_verification_of_a_chain(self, p, q):  # E1
        """gamma = 2, V = 2: the joint law of two tokens, and the accepted lengths of block verification by formula.

        In the second case the residual behind a first token that was accepted in part, (w p - q)_+, is not empty.
        """
        outcomes = round_outcomes(p, q, 2, rule_name="path", rule=Selecting())
        p, q = np.array(p), np.array(q)
        law = np.zeros((2, 2))
        for weight, _, tokens in outcomes:
            rest = np.eye(2)[tokens[1]] if len(tokens) > 1 else p  # a round of one token goes on by the target
            law[tokens[0]] += weight * rest
        np.testing.assert_allclose(law, np.outer(p, p), rtol=0, atol=1e-14)
        # w_i = min(1, w_(i-1) p/q) along the drafts: all are accepted with probability w_2 (Sun et al., section 4)
        both = sum(q[a] * q[b] * min(1, min(1, p[a] / q[a]) * p[b] / q[b]) for a in (0, 1) for b in (0, 1))
        assert sum(w for w, accepted, _ in outcomes if accepted == 2) == pytest.approx(both, abs=1e-14)

    def test_point_mass_drafts_gain_nothing_from_blocks(self):  # E2
        """p(x1) = p(x2) = 1/2 and certain drafts: P(accept >= 1) is 1/2, not .625."""
        for rule_name, rule in (("path", Selecting()), ("node", "deterministic")):
            outcomes = round_outcomes([0.5, 0.5], [1.0, 0.0], 2, "deterministic", rule, rule_name)
            assert sum(w for w, accepted, _ in outcomes if accepted >= 1) == pytest.approx(0.5)

    def test_blocks_accept_more_than_tokens(self):  # E3
        """A block may accept a longer prefix where a shorter one alone would have failed: on average, more."""
        node, path = (
            sum(w * accepted for w, accepted, _ in round_outcomes(self.P, self.Q, 2, rule=rule, rule_name=name))
            for name, rule in (("node", "rrs"), ("path", Selecting()))
        )
        assert path > node + 0.01

    def test_one_last_token_and_a_bonus_only_behind_a_whole_path(self):  # E6
        for _, accepted, tokens in round_outcomes(self.P, self.Q, 2):
            assert len(tokens) == accepted + 1
        result = generate(cached(), model(seed=1), [[1]], (2, 2), max_new_tokens=30, seeds=1, eos_token_ids=())
        events = []
        generate(
            cached(), model(seed=1), [[1]], (2, 2), max_new_tokens=30, seeds=1, eos_token_ids=(), stream=events.append
        )
        for event, record in zip(events, result.metrics.rounds, strict=True):
            if event.finish_reason is None:
                assert event.kinds == ("draft",) * record.accepted + ("bonus" if record.accepted == 2 else "resampled",)

    def test_the_first_draft_is_judged_too(self):  # E7
        law = first_token_law([0.0, 1.0], [1.0, 0.0], "with_replacement", "rrs")
        assert law.tolist() == [0.0, 1.0]

    def test_a_perfect_draft_is_accepted_in_full_round_after_round(self):  # E8, E9
        causal_lm = model(seed=4)
        for tree in ((1, 1, 1), (2, 2, 2)):
            result = generate(
                CachedModel(causal_lm),
                ModelDrafter(CachedModel(causal_lm)),
                [[1, 2], [3]],
                tree,
                max_new_tokens=24,
                eos_token_ids=(),
                seeds=0,
            )
            assert result.metrics.alpha_node > 1 - 1e-12
            assert len(result.metrics.of_request(0)) == 6

    def test_odd_shapes(self):  # E11
        star = DraftTree.from_branching((V,))
        for tree in (star, DraftTree.chain(1), DraftTree.chain(0), DraftTree((-1, 0, 0, 2, 3, 4, 5))):
            result = generate(cached(), model(seed=1), [[1], [2, 3]], tree, max_new_tokens=6, seeds=0, eos_token_ids=())
            assert [len(tokens) for tokens in result.tokens] == [6, 6]


class TestEndsAndCounts:
    def test_nothing_after_the_end_of_text(self):  # F1
        """Block (5, EOS, 7) and a bonus: the text ends at EOS, in the stream, the counts and the cache."""
        chain = {(1,): 5, (1, 5): 2, (1, 5, 2): 7}

        class Chain(TableModel):
            def p(self, context):
                return np.eye(9)[chain.get(tuple(context), 8)]

        events = []
        target = Chain(9, 0)
        result = generate(
            target,
            ModelDrafter(Chain(9, 0)),
            [[1]],
            (1, 1, 1),
            sampling=GREEDY,
            max_new_tokens=10,
            eos_token_ids=(2,),
            stream=events.append,
        )
        assert result.tokens == [[5, 2]]
        assert result.kinds == [["draft", "draft"]]
        assert result.finish_reasons == ["eos"]
        assert [event.tokens for event in events] == [(5, 2)]
        assert result.metrics.emitted == 2
        assert len(result.logprobs[0]) == 2
        assert target.texts == []  # the row has left the cache

    @pytest.mark.parametrize("place", range(6))
    def test_the_end_of_text_at_every_place_of_a_block(self, place):  # F1
        """Blocks of three drafts and a bonus: EOS as any draft, as the bonus, in a later block; a neighbour goes on."""
        end = 3 + place

        class Counting(TableModel):  # 3, 4, 5, ... after the prompt 1, and 2 for ever after the prompt 2
            def p(self, context):
                return np.eye(12)[min(2 + len(context), 11) if context[0] == 1 else 2]

        events = []
        target = Counting(12, 0)
        select, kept = target.select_rows, []
        target.select_rows = lambda rows: kept.append(list(rows)) or select(rows)
        result = generate(
            target, ModelDrafter(Counting(12, 0)), [[1], [2]], (1, 1, 1), sampling=GREEDY, max_new_tokens=9, seeds=0,
            eos_token_ids=(end,), stream=events.append,
        )  # fmt: skip
        assert result.tokens == [[*range(3, end + 1)], [2] * 9]
        assert result.kinds[0] == ["draft", "draft", "draft", "bonus", "draft", "draft"][: place + 1]
        assert result.finish_reasons == ["eos", "length"]
        assert [token for event in events if event.request == 0 for token in event.tokens] == result.tokens[0]
        assert len(result.logprobs[0]) == place + 1
        assert sum(record.emitted for record in result.metrics.of_request(0)) == place + 1
        assert kept == [[1], []]  # its row leaves both caches with that round

    def test_accepted_by_the_rule_and_emitted_are_both_reported(self):  # F2
        constant = Constant([1.0, 0.0])
        result = generate(constant, ModelDrafter(Constant([1.0, 0.0])), [[0]], (1, 1, 1, 1), max_new_tokens=2)
        assert (result.metrics.accepted, result.metrics.emitted) == (4, 2)
        assert result.finish_reasons == ["length"]


class Counting:
    """A generator that keeps the uniforms it gives."""

    def __init__(self, seed):
        self.rng, self.seen = np.random.default_rng(seed), []
        self.bit_generator = self.rng.bit_generator

    def random(self, size=None):
        value = self.rng.random(size)
        self.seen += np.atleast_1d(value).ravel().tolist()
        return value


class TestRandomStreams:
    def test_one_seed_one_text(self):  # G1
        def text():
            return generate(cached(), model(seed=1), [[1, 2]], (2, 2), max_new_tokens=12, seeds=42).tokens

        assert text() == text()

    def test_an_unseeded_neighbour_changes_nothing(self):  # G2
        def first(seeds, prompts):
            return generate(cached(), model(seed=1), prompts, (2, 2), max_new_tokens=12, seeds=seeds).tokens[0]

        assert first([1, None], [[1, 2], [3]]) == first([1], [[1, 2]])

    def test_a_round_without_drafts_draws_for_its_one_token_only(self):  # G3
        rng = Counting(0)
        loop, request = make_loop(
            TableModel(9, 1),
            PromptLookup(9),
            [1, 2, 3],  # nothing repeats: nothing is proposed
            RandomChoices(rng),
            DraftTree.from_branching((2, 2)),
            scheme_family("deterministic"),
            tree_rule("node", verifier("deterministic")),
        )
        loop.step()
        assert len(rng.seen) == len(request.new_tokens) == 1

    def test_no_uniform_is_used_twice(self):  # G6, G13
        rng = Counting(3)
        loop, request = make_loop(
            TableModel(5, 1),
            ModelDrafter(TableModel(5, 2)),
            [1],
            RandomChoices(rng),
            DraftTree.from_branching((2, 2)),
            scheme_family("with_replacement"),
            tree_rule("node", verifier("rrs")),
            count=40,
        )
        while loop.active:
            loop.step()
        assert len(rng.seen) > len(request.new_tokens)
        assert len(set(rng.seen)) == len(rng.seen)

    def test_positions_draw_their_own_uniforms(self):  # G7
        """p/q = 1/2 on the only token q proposes: all four are accepted with probability 1/16, not 1/2."""
        outcomes = round_outcomes([0.5, 0.5], [1.0, 0.0], 4)
        assert sum(w for w, accepted, _ in outcomes if accepted == 4) == pytest.approx(1 / 16)
        runs = 1000
        all_four = 0
        for choices in streams(5, runs):
            loop, _ = make_loop(
                Constant([0.5, 0.5]),
                ModelDrafter(Constant([1.0, 0.0])),
                [0],
                choices,
                DraftTree.chain(4),
                scheme_family("with_replacement"),
                tree_rule("node", verifier("rrs")),
            )
            loop.step()
            all_four += loop.records[0].accepted == 4
        assert abs(all_four / runs - 1 / 16) < 5 * np.sqrt(1 / 16 * 15 / 16 / runs)

    @pytest.mark.parametrize("where", ["draft", "target", "layer", "verify"])
    def test_a_round_that_fails_leaves_no_trace(self, where, monkeypatch):  # G9, I5
        """An error or an interrupt anywhere in a round: streams and caches go back, and the text goes on the same."""

        def fresh():
            return make_loop(
                cached(),
                ModelDrafter(cached(seed=1)),
                [1, 2, 3],
                streams(9, 1)[0],
                DraftTree.from_branching((2, 2)),
                scheme_family("with_replacement"),
                tree_rule("node", verifier("rrs")),
                count=20,
            )

        whole, expected = fresh()
        while whole.active:
            whole.step()
        loop, request = fresh()
        owner, name = {
            "draft": (loop.drafter, "propose"),
            "target": (loop.target.model, "forward"),
            "layer": (loop.target.model.model.layers[1], "forward"),  # the first layer's cache has grown already
            "verify": (loop.settings.rule, "walk"),
        }[where]
        real = getattr(owner, name)
        rounds = 0
        while loop.active:
            if rounds % 2:

                def broken(*args, **kwargs):
                    if where == "draft":
                        real(*args, **kwargs)  # the model has run, then the interrupt comes
                    raise KeyboardInterrupt

                monkeypatch.setattr(owner, name, broken)
                with pytest.raises(KeyboardInterrupt):
                    loop.step()
                monkeypatch.setattr(owner, name, real)
                assert loop.target.cached(0) == len(request.tokens) - 1
            loop.step()
            rounds += 1
        assert rounds > 4
        assert request.new_tokens == expected.new_tokens


class TestVocabularyAndProcessors:
    def test_padding_has_no_mass(self):  # H2
        causal_lm = model(vocab_size=V + 3)
        result = generate(
            CachedModel(causal_lm, vocab_size=V),
            ModelDrafter(CachedModel(model(seed=1, vocab_size=V + 3), vocab_size=V)),
            [[1, 2]],
            (2, 2),
            max_new_tokens=40,
            seeds=0,
            eos_token_ids=(),
        )
        assert max(result.tokens[0]) < V

    def test_processors_see_the_path_of_each_node(self):  # H12, H13
        """Greedy with a repetition penalty: trees or not, the text is that of token-by-token decoding."""
        penalty = RepetitionPenaltyLogitsProcessor(1.7)
        causal_lm = model(seed=6)
        tokens = [1, 1]
        with torch.inference_mode():
            for _ in range(15):
                scores = causal_lm(torch.tensor([tokens])).logits[:, -1]
                tokens.append(int(penalty(torch.tensor([tokens]), scores).argmax()))
        results = [
            generate(
                CachedModel(causal_lm),
                GuidedDrafter([tokens]),
                [[1, 1]],
                tree,
                sampling=GREEDY,
                draft_sampling=SamplingParams(),
                max_new_tokens=15,
                seeds=1,
                eos_token_ids=(),
                processors=processors,
            )
            for tree, processors in (((2, 1, 1), [penalty]), ((2, 1, 1), []))
        ]
        assert results[0].tokens[0] == tokens[2:]
        assert results[0].metrics.accepted > 0
        assert results[1].tokens[0] != tokens[2:]  # the penalty matters here

    def test_the_row_at_depth_2_penalises_its_own_path(self):  # H12
        seen = []

        def processor(ids, scores):
            seen.append(ids[0].tolist())
            return scores

        generate(
            Constant([0.0, 1.0]), ModelDrafter(Constant([0.0, 1.0])), [[0]], (1, 1), max_new_tokens=3,
            processors=[processor],
        )  # fmt: skip
        assert [0] in seen
        assert [0, 1] in seen
        assert [0, 1, 1] in seen

    def test_matching_greedy_drafts_is_lossless_and_accepts_p(self):  # H14
        outcomes = round_outcomes([0.5, 0.3, 0.2], [0.6, 0.3, 0.1], 1, "deterministic", "token_matching")
        assert sum(w * accepted for w, accepted, _ in outcomes) == pytest.approx(0.5)


class TestCacheAndPositions:
    def test_the_draft_recovers_from_a_rejection(self):  # I6, I7
        """A draft that is wrong once: acceptance is 1 again in the next rounds, and its cache never lags."""
        causal_lm = model(seed=4)
        prompt = [1, 2, 3]
        loop, request = make_loop(
            CachedModel(causal_lm),
            ModelDrafter(CachedModel(causal_lm)),
            prompt,
            streams(0, 1)[0],
            DraftTree.chain(3),
            scheme_family("with_replacement"),
            tree_rule("node", verifier("rrs")),
            count=40,
            sampling=GREEDY,
        )
        propose = loop.drafter.propose

        def wrong_once(trees, nodes):
            logits = propose(trees, nodes)
            if len(loop.records) == 1 and trees[0].depths[nodes[0][0]] == 1:
                return [[-row for row in rows] for rows in logits]
            return logits

        loop.drafter.propose = wrong_once
        while loop.active:
            loop.step()
            if loop.active:
                assert loop.target.cached(0) == len(request.tokens) - 1
                # behind by the bonus, and by a last draft that was never fed
                assert loop.drafter.scorer.cached(0) >= len(request.tokens) - 2
        assert [record.accepted for record in loop.records[:5]] == [3, 1, 3, 3, 3]

    def test_rounds_without_drafts_are_caught_up(self):  # I8
        causal_lm = model(seed=4)
        loop, request = make_loop(
            CachedModel(causal_lm),
            ModelDrafter(CachedModel(causal_lm)),
            [1, 2, 3],
            streams(0, 1)[0],
            DraftTree.chain(2),
            scheme_family("with_replacement"),
            tree_rule("node", verifier("rrs")),
            count=30,
            sampling=GREEDY,
        )
        whole = loop.settings
        for gamma in (2, 0, 0, 2, 0, 2):
            loop.settings = replace(whole, tree=whole.tree.truncated(gamma))
            loop.step()
        assert [record.accepted for record in loop.records] == [2, 0, 0, 2, 0, 2]
        assert request.tokens == plain_greedy(causal_lm, [1, 2, 3], len(request.new_tokens))

    @pytest.mark.parametrize("tree", [(1, 1, 1, 1), (2, 2)])
    @pytest.mark.parametrize(("family", "context"), [("llama", "max_position_embeddings"), ("gpt2", "n_positions")])
    def test_the_text_stops_at_the_end_of_the_context(self, tree, family, context):  # I11
        """GPT-2 has a table of positions: a draft beyond its end is an error."""
        causal_lm = model(family, **{context: 16})
        prompt = [*range(1, 13), 1, 2]
        for target, draft in (
            (CachedModel(causal_lm), CachedModel(causal_lm)),
            (CachedModel(causal_lm), cached(family, seed=1)),
        ):
            result = generate(
                target, ModelDrafter(draft), [prompt, [1, 2, 3]], tree, sampling=GREEDY, max_new_tokens=50, seeds=0,
                eos_token_ids=(),
            )  # fmt: skip
            assert result.finish_reasons == ["context", "context"]
            assert result.tokens[0] == plain_greedy(causal_lm, prompt, 2)[14:]
            assert result.tokens[1] == plain_greedy(causal_lm, [1, 2, 3], 13)[3:]

    def test_a_draft_with_a_shorter_context_stops_drafting(self):  # I11
        causal_lm = model()
        result = generate(
            CachedModel(causal_lm), model(seed=1, max_position_embeddings=10), [[1, 2, 3]], (2, 2), sampling=GREEDY,
            max_new_tokens=20, seeds=0, eos_token_ids=(),
        )  # fmt: skip
        assert result.tokens[0] == plain_greedy(causal_lm, [1, 2, 3], 20)[3:]
        assert result.finish_reasons == ["length"]
        assert CONTEXT > 23

    def test_padding_of_a_block_is_never_seen(self):  # I13, I14
        """Rows of 1 and 6 tokens in one pass: garbage in the padding cannot reach any logit."""
        causal_lm = model()
        scorer = CachedModel(causal_lm)
        scorer.start(2)
        scorer.feed([Block.chain([5], 1), Block.chain([1, 2, 3, 4, 5, 6], 1)])
        scorer.commit([[0], range(6)])
        scorer.feed([Block.chain([7, 8, 9], 1), Block.chain([7], 1)])
        scorer.commit([[0, 1], [0]])
        logits = scorer.feed([Block.chain([9], 1), Block.chain([9], 1)])
        for row, text in enumerate(([5, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 9])):
            torch.testing.assert_close(logits[row][0], path_logits(causal_lm, text), rtol=0, atol=1e-12)
