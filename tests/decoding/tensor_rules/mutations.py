"""Faults to put into the verifiers on tensors; `tests/mutations.py` runs them."""

from tests.mutant import mutation

BATCHED = [
    mutation(f"batched: {name}", f"decoding/tensor_rules/{file}", *edits, tests=f"tests/decoding/tensor_rules/{test}")
    for name, file, *edits, test in (
        (
            "rows judged by the p of the first row",
            "_host.py",
            "_rejection(p[i], q[i], mass",
            "_rejection(p[0], q[i], mass",
            "test_faults.py::test_I12_G4_a_row_does_not_depend_on_the_batch[rrs]",
        ),
        (
            "the uniform of the last draft again for the residual",
            "_host.py",
            "return _draw(p, w, level, blocks, u[used]), used + 1",
            "return _draw(p, w, level, blocks, u[used - 1]), used + 1",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[kernels-rrs]",
        ),
        (
            "a zero-probability draft passes at u = 0",
            "_host.py",
            "(w[x] / rest)) < weight",
            "(w[x] / rest)) <= weight",
            "test_batched.py::test_extreme_uniforms_give_possible_tokens[kernels-rrs-WithReplacement(n=2)]",
        ),
        (
            "NaN gets through",
            "_host.py",
            "if not np.isfinite(mass):",
            "if False:",
            "test_faults.py::test_B7_NaN_never_becomes_a_token_even_unchecked",
        ),
        (
            "padding is scored",
            "_rules.py",
            "judged = judging & (j < nodes.count)",
            "judged = judging",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[tensor operations-rrs]",
        ),
        (
            "stale q on tensors",
            "_rules.py",
            "rest = without(w, w_sums, nodes.sampled[:, : j + 1]).sum(dim=1)",
            "rest = w_sums.sum(dim=1)",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[tensor operations-rrs_without]",
        ),
        (
            "a rejected child is drawn after all",
            "_rules.py",
            "pick(u, used), gone=children)",
            "pick(u, used))",
            "test_batched.py::test_verify_of_mixed_rows_is_that_of_the_verifier[tensor operations-deterministic]",
        ),
        (
            "the law is not renormalised",
            "_laws.py",
            "left, some = _normalised((r - proposal).clamp(min=0.0))",
            "left, some = (r - proposal).clamp(min=0.0), (r > proposal).any(dim=1)",
            "test_batched.py::test_output_law_is_lossless[rrs-WithReplacement(n=2)]",
        ),
        (
            "one temperature for all rows",
            "softmax.py",
            "torch.tensor(checked, dtype",
            "torch.tensor([checked[1]] * len(checked), dtype",
            "test_faults.py::test_I15_every_row_has_its_own_temperature",
        ),
        (
            "generators give what the longest row needs",
            "interface.py",
            "generator.random(count)",
            "generator.random(max(counts))[:count]",
            "test_faults.py::test_G3_a_generator_gives_what_its_own_row_needs",
        ),
    )
]
