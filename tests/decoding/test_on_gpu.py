"""The loop on a CUDA device; run by `make gpu-check`."""

import pytest

from mdsd_core.decoding.generate import generate
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair

pytestmark = pytest.mark.gpu

PROMPTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13]]


def pair_on(device):
    pair = tiny_random_pair()
    return tuple(model.model.double().to(device).eval() for model in (pair.target, pair.draft))


def texts(device, prompts=PROMPTS, temperature=1.0, tree=(3, 2), scheme="without_replacement", verifier="rrs_without"):
    target, draft = pair_on(device)
    sampling = SamplingParams(temperature=temperature)
    result = generate(
        target, draft if tree else None, prompts, tree or (1,), scheme, verifier,
        sampling=sampling, max_new_tokens=24, seeds=[3] * len(prompts), eos_token_ids=(),
    )  # fmt: skip
    return result


def test_greedy_decoding_is_plain_greedy():
    assert texts("cuda", temperature=0.0).tokens == texts("cuda", temperature=0.0, tree=None).tokens


@pytest.mark.parametrize(
    ("scheme", "verifier"), [("without_replacement", "rrs_without"), ("with_replacement", "optimal")]
)
def test_double_precision_texts_are_those_of_the_host(scheme, verifier):
    assert (
        texts("cuda", scheme=scheme, verifier=verifier).tokens == texts("cpu", scheme=scheme, verifier=verifier).tokens
    )


def test_a_batch_is_what_each_prompt_gets_alone():
    assert texts("cuda").tokens == [texts("cuda", [prompt]).tokens[0] for prompt in PROMPTS]


def test_times_are_taken_on_the_device():
    times = texts("cuda").metrics.times
    assert min(times.draft, times.target, times.verify) > 0
