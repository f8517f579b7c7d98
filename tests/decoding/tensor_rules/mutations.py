"""Faults to put into the verifiers on tensors; `tests/mutations.py` runs them."""

from tests.mutant import mutation

BATCHED = [
    mutation(f"batched: {name}", f"decoding/tensor_rules/{file}", *edits, tests=f"tests/decoding/tensor_rules/{test}")
    for name, file, *edits, test in (
        (
            "rows judged by the p of the first row",
            "_rules.py",
            "weight = pick(p, x) - level * of_x",
            "weight = pick(p[:1].expand_as(p), x) - level * of_x",
            "test_faults.py::test_a_row_does_not_depend_on_the_batch[rrs]",
        ),
        (
            "the uniform of the last draft again for the residual",
            "_rules.py",
            "left = draw_from(residual(p, w, level), pick(u, used))\n    return torch.where(open_, left, token)",
            "left = draw_from(residual(p, w, level), pick(u, used - 1))\n    return torch.where(open_, left, token)",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[rrs]",
        ),
        (
            "a zero-probability draft passes at u = 0",
            "_rules.py",
            "(of_x / rest)) < weight)",
            "(of_x / rest)) <= weight)",
            "test_batched.py::test_extreme_uniforms_give_possible_tokens[rrs-WithReplacement(n=2)]",
        ),
        (
            "NaN gets through",
            "interface.py",
            "tokens = torch.where(nodes.p_sums.sum(dim=1).isfinite(), tokens, -1)",
            "pass",
            "test_faults.py::test_NaN_never_becomes_a_token_even_unchecked",
        ),
        (
            "tensor operations on the host",
            "interface.py",
            "if p.device.type in ROW_BY_ROW or not",
            "if not",
            "test_batched.py::test_on_the_host_every_rule_runs_row_by_row",
        ),
        (
            "padding is scored",
            "_rules.py",
            "judged = judging & (j < nodes.count)",
            "judged = judging",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[rrs]",
        ),
        (
            "stale q on tensors",
            "_rules.py",
            "rest = without(w, w_sums, nodes.sampled[:, : j + 1]).sum(dim=1)",
            "rest = w_sums.sum(dim=1)",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[rrs_without]",
        ),
        (
            "a rejected child is drawn after all",
            "_rules.py",
            "pick(u, used), gone=children)",
            "pick(u, used))",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[deterministic]",
        ),
        (
            "one temperature for all rows",
            "softmax.py",
            "torch.tensor(checked, dtype",
            "torch.tensor([checked[1]] * len(checked), dtype",
            "test_faults.py::test_every_row_has_its_own_temperature",
        ),
        (
            "generators give what the longest row needs",
            "interface.py",
            "generator.random(count)",
            "generator.random(max(counts))[:count]",
            "test_faults.py::test_a_generator_gives_what_its_own_row_needs",
        ),
    )
]
