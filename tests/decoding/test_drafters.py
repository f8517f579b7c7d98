"""Drafters: the trigram against a direct count, prompt look-up, and the loop with each of them."""

from collections import Counter

import numpy as np
import pytest

from mdsd_core.decoding.drafters.lookup import PromptLookup, continuations
from mdsd_core.decoding.drafters.ngram import NGramDrafter, WittenBellTrigram
from mdsd_core.decoding.generate import generate
from mdsd_core.distributions import SamplingParams
from mdsd_core.schemes import Deterministic
from mdsd_core.verifiers import UnsupportedScheme, verifiers_for
from tests.decoding.tiny import V, cached, model, plain_greedy


def direct(texts, size, context, token):
    """Witten-Bell by the formula, from dictionaries."""

    def p(h, w):
        count = Counter()
        for text in texts:
            for i in range(len(h), len(text)):
                if tuple(text[i - len(h) : i]) == h:
                    count[text[i]] += 1
        lower = p(h[1:], w) if h else 1.0 / size
        c, t = sum(count.values()), len(count)
        return (count[w] + t * lower) / (c + t) if c else lower

    return p(tuple(context[-2:]), token)


def test_the_trigram_is_witten_bell():
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, size=n).tolist() for n in (40, 1, 2, 0, 30)]
    trigram = WittenBellTrigram.fit(texts, 6)  # token 5 never occurs
    for context in ([], [3], [0, 1], [4, 4], [5, 2], [2, 5], [1, 2, 3, 4]):
        want = [direct(texts, 6, context, w) for w in range(6)]
        np.testing.assert_allclose(trigram.distribution(context), want, rtol=0, atol=1e-15)


def test_the_trigram_survives_the_disk_and_checks_its_input(tmp_path):
    trigram = WittenBellTrigram.fit([[0, 1, 2, 1, 0]], 4)
    trigram.save(tmp_path / "counts.npz")
    again = WittenBellTrigram.load(tmp_path / "counts.npz")
    np.testing.assert_array_equal(again.distribution([1, 2]), trigram.distribution([1, 2]))
    np.testing.assert_array_equal(WittenBellTrigram.fit([], 4).distribution([1]), np.full(4, 0.25))
    with pytest.raises(ValueError, match=r"ids in \[0, 4\)"):
        WittenBellTrigram.fit([[4]], 4)
    with pytest.raises(ValueError, match="vocab_size"):
        WittenBellTrigram.fit([[0]], 0)


def test_the_trigram_is_stored_compactly():
    rng = np.random.default_rng(1)
    trigram = WittenBellTrigram.fit([rng.integers(49152, size=20000)], 49152)
    held = sum(a.nbytes for table in (trigram.bigram, trigram.trigram) for a in vars(table).values())
    assert held <= 2 * 20000 * (8 + 16)


def test_look_up_prefers_long_then_late_matches():
    assert continuations([1, 2, 3, 9, 2, 3, 8, 3, 7, 1, 2, 3], 3, 4) == [9, 8, 7]
    assert continuations([1, 2, 3, 9, 2, 3, 8, 3, 7, 1, 2, 3], 1, 2) == [7, 8]
    assert continuations([1, 2, 3], 3, 2) == []
    assert continuations([4], 3, 2) == []
    with pytest.raises(ValueError, match="longest"):
        PromptLookup(5, longest=0)


def test_look_up_needs_a_deterministic_scheme():  # A4, A8, A9
    with pytest.raises(ValueError, match="names tokens without probabilities"):
        generate(cached(), PromptLookup(V), [[1, 2, 1]], (2,), scheme="with_replacement")
    with pytest.raises(ValueError, match="names tokens without probabilities"):  # before any advice on verifiers
        generate(cached(), PromptLookup(V), [[1, 2, 1]], (2,), scheme="with_replacement", verifier="deterministic")
    with pytest.raises(UnsupportedScheme, match="not lossless"):
        generate(cached(), PromptLookup(V), [[1, 2, 1]], (2,), scheme="deterministic", verifier="rrs")


def test_drafters_keep_greedy_decoding_greedy():
    causal_lm = model()
    prompts = [[1, 2, 3, 1, 2], [4, 5]]
    texts = [plain_greedy(causal_lm, prompt, 20) for prompt in prompts]
    drafter = NGramDrafter(WittenBellTrigram.fit(texts, V))
    result = generate(
        cached(),
        drafter,
        prompts,
        (2, 2),
        "without_replacement",
        "rrs_without",
        sampling=SamplingParams(temperature=0),
        draft_sampling=SamplingParams(temperature=0.5),
        max_new_tokens=20,
        eos_token_ids=(),
        seeds=0,
    )
    assert result.tokens == [text[len(prompt) :] for text, prompt in zip(texts, prompts)]
    assert result.metrics.accepted > 10
    assert result.metrics.draft_calls == 2 * result.metrics.target_calls


@pytest.mark.parametrize("verifier", verifiers_for(Deterministic(2)))
def test_look_up_in_the_loop(verifier):
    causal_lm = model(seed=3)
    prompt = [1, 2, 3, 1, 2]
    text = plain_greedy(causal_lm, prompt, 25)
    result = generate(
        cached(seed=3),
        PromptLookup(V),
        [prompt],
        (2, 1, 1),
        "deterministic",
        verifier,
        sampling=SamplingParams(temperature=0),
        max_new_tokens=25,
        eos_token_ids=(),
        seeds=0,
    )
    assert result.tokens[0] == text[len(prompt) :]
    assert result.metrics.accepted > 0
