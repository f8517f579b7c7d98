"""Faults to put into the marginal, the coupling and the selection by priorities; `tests/mutations.py` runs them."""

from tests.mutant import mutation

COUPLING, MARGINAL, PRIORITY, NEST = (
    f"tests/core/transport/test_{name}.py" for name in ("coupling", "marginal", "priority", "nested")
)
SMALL = f"{COUPLING}::test_small_instances_by_enumeration_of_all_drafts[2]"
SKEWED = f"{COUPLING}::test_every_kind_of_skew_stays_lossless"
NESTED = f"{COUPLING}::test_intervals_are_nested_tile_the_line_and_have_the_masses_asked_for"
FIXED = f"{COUPLING}::test_fixed_sets_by_enumeration"
TILING = f"{COUPLING}::test_the_plan_is_exact_for_any_tiling"
TINY = f"{COUPLING}::test_tokens_below_rounding_do_not_stand_in_the_way"
POLYTOPE = f"{MARGINAL}::test_majorant_lies_in_the_polytope_and_is_optimal_at_every_scale"

CHAIN, BLOCKS, PLAN = (f"transport/nest/{name}.py" for name in ("chain", "minorant", "plan"))


def few(law):
    return f"{NEST}::test_a_few_steep_instances[{law}]"


TRANSPORT = [
    mutation(
        "order: neighbours whose leading digits agree stay as they are",
        "transport/order.py",
        "if ratio < last:",
        "if False:",
        tests="tests/core/transport/test_order.py::test_order_is_the_stable_order_of_the_ratio",
    ),
    mutation(
        "powers: the series loses its second term",
        "_powers.py",
        "mean = 1.0 + (n - 1) * (n - 2) / 6.0 * square *",
        "mean = 1.0 + 0.0 * (n - 1) * (n - 2) / 6.0 * square *",
        tests=TILING,
    ),
    mutation(
        "majorant: neighbours are pooled where slopes fall",
        "transport/marginal.py",
        "slope[top - 1] <= own_slope",
        "slope[top - 1] >= own_slope",
        tests=f"{POLYTOPE}[with replacement]",
    ),
    mutation(
        "majorant: tokens without target mass are pooled too",
        "transport/marginal.py",
        "while none < m and mass + p[none] <= _NO_MASS:",
        "while none < m and mass + p[none] < 0.0:",
        tests=f"{POLYTOPE}[with replacement]",
    ),
    mutation(
        "majorant: slopes after a target mass that is next to none",
        "transport/marginal.py",
        "_NO_MASS = 1e-290",
        "_NO_MASS = 0.0",
        tests=f"{MARGINAL}::test_a_target_mass_too_small_to_divide_by",
    ),
    mutation(
        "majorant: a fixed set without its own mass",
        "transport/marginal.py",
        "(p_fixed + np.cumsum(order.p)[ends])",
        "np.cumsum(order.p)[ends]",
        tests=f"{POLYTOPE}[greedy]",
    ),
    mutation(
        "majorant: a fixed set that takes mass from the last tokens",
        "transport/marginal.py",
        "r = np.minimum(off_fixed, lam * p)",
        "r = off_fixed * (1 - lam * p_fixed)",
        tests=f"{POLYTOPE}[greedy]",
    ),
    mutation(
        "curtain: never swallows more than one hole",
        "transport/curtain/kernels.py",
        "while h > 0:",
        "while h > m:",
        tests=NESTED,
    ),
    mutation(
        "curtain: the mass of swallowed gaps is forgotten",
        "transport/curtain/kernels.py",
        "own -= gap_mass",
        "own -= 0.0",
        tests=NESTED,
    ),
    mutation(
        "curtain: always right of all holes",
        "transport/curtain/kernels.py",
        "if top == 0 or (r[k] > q * floor and r[k] >= power_mass(hull_right, q, n)[0]):",
        "if True:",
        tests=NESTED,
    ),
    mutation(
        "curtain: gaps between blocks stay open",
        "transport/curtain/kernels.py",
        "right[hole[j]] = left[hole[j + 1]] if j < top else end",
        "right[hole[j]] = right[hole[j]]",
        tests=NESTED,
    ),
    mutation(
        "curtain: small tokens are placed to an absolute tolerance",
        "transport/curtain/kernels.py",
        "    tolerance = _RELATIVE * r\n",
        "    tolerance = 1e-15\n",
        tests=TINY,
    ),
    mutation(
        "curtain: one step of Newton's method is always enough",
        "transport/curtain/kernels.py",
        "return d + change, doubt if n * (x + y) <= _STEADY else np.inf, right_density * hull_end",
        "return d + change, 0.0, right_density * hull_end",
        tests=NESTED,
    ),
    mutation(
        "pieces: all of a token's probability on its first piece",
        "transport/curtain/kernels.py",
        "upto = min(drawn + length / q, 1.0) if length < q else 1.0",
        "upto = 1.0",
        tests=SMALL,
    ),
    mutation(
        "pieces: more than all of a token",
        "transport/curtain/kernels.py",
        "upto = min(drawn + length / q, 1.0) if length < q else 1.0",
        "upto = drawn + length / q",
        tests=SKEWED,
    ),
    mutation(
        "pieces: from right to left",
        "transport/curtain/kernels.py",
        "key[i] = j",
        "key[i] = -j",
        tests=SMALL,
    ),
    mutation(
        "pieces: the law of one draft instead of the winner's",
        "transport/curtain/kernels.py",
        "r[x] += power_mass(before + lost, step, n)[0]",
        "r[x] += step",
        tests=TILING,
    ),
    mutation(
        "pieces: the marginal asked for, not the one realised",
        "transport/curtain/coupling.py",
        "by_token(self.tokens, r, row, marginal)",
        "by_token(self.tokens, self.asked, row, marginal)",
        tests=TILING,
    ),
    mutation(
        "coupling: q off the fixed set is not normalised",
        "transport/curtain/coupling.py",
        "    w /= w.sum()  # its own array\n",
        "",
        tests=FIXED,
    ),
    mutation(
        "coupling: the fixed set wins over other drafts",
        "transport/curtain/coupling.py",
        "np.arange(-fixed.size, 0)",
        "key.size + np.arange(fixed.size)",
        tests=FIXED,
    ),
    mutation(
        "priority: a segment of probability 0 is drawn",
        "transport/priority.py",
        "if cumulative[middle] > u:",
        "if cumulative[middle] >= u:",
        tests=PRIORITY,
    ),
    mutation(
        "priority: of equal labels the last wins",
        "transport/priority.py",
        "limit = key[s] if j < i else key[s] + 1",
        "limit = key[s] if j > i else key[s] + 1",
        tests=PRIORITY,
    ),
    mutation(
        "priority: the law of segments piles up",
        "transport/priority.py",
        "                below = cumulative[s]\n",
        "",
        tests=PRIORITY,
    ),
    mutation(
        "priority: a token that is never drafted is let in",
        "transport/priority.py",
        "(self.row[array] < 0) & (array != NO_DRAFT)",
        "np.zeros(array.shape, dtype=bool)",
        tests=f"{PRIORITY}::test_errors_name_the_token",
    ),
    mutation(
        "nest: a token's two masses exchanged",
        CHAIN,
        "nest.marginal[x] = share * lo + (1.0 - share) * up",
        "nest.marginal[x] = share * up + (1.0 - share) * lo",
        tests=few("sequential"),
    ),
    mutation(
        "nest: ancestors count as fully included",
        CHAIN,
        "multiply_token(states.ancestors, share, law.race * survival",
        "multiply_token(states.ancestors, 1.0, law.race * survival",
        tests=few("sequential"),
    ),
    mutation(
        "nest: shares are not clipped",
        CHAIN,
        "min(max((up - agenda.r[x]) / (up - lo), 0.0), 1.0)",
        "(up - agenda.r[x]) / (up - lo)",
        tests=few("pairs"),
    ),
    mutation(
        "nest: the prefix of the block is left out of the lower derivative",
        CHAIN,
        "coefficient(states.floor, states.ancestors, top, rate + law.race * states.reach[u - 1], weight)",
        "coefficient(states.ancestors, states.ancestors, top, rate + law.race * states.reach[u - 1], weight)",
        tests=few("sequential"),
    ),
    mutation(
        "nest: several blocks never, only one",
        "transport/nest/build.py",
        "if kept > 2:",
        "if kept > 99:",
        tests=few("conditioned"),
    ),
    mutation(
        "nest: a part brings its inclusion twice",
        BLOCKS,
        "received += (level - below) * push",
        "received += level * push",
        tests=few("conditioned"),
    ),
    mutation(
        "nest: the marginal asked for in place of the one realised",
        BLOCKS,
        "nest.marginal[y] = received + (1.0 - level) * push",
        "nest.marginal[y] = agenda.r[y]",
        tests=f"{NEST}::test_past_the_limit_the_plan_is_coarser_and_still_lossless",
    ),
    mutation(
        "nest: blocks inside a label at its final inclusion",
        BLOCKS,
        "set_block(agenda.stack[top], start, end, slot, y, level, rest)",
        "set_block(agenda.stack[top], start, end, slot, y, 1.0, rest)",
        tests=few("conditioned"),
    ),
    mutation(
        "nest: segments of one base in ascending order of rank",
        PLAN,
        "below, against = 0.0, m - 1 - x",
        "below, against = 0.0, x",
        tests=few("pairs"),
    ),
    mutation(
        "nest: all parts at the base of the block",
        PLAN,
        "key[count], cumulative[count] = nest.part_base[i] * m + against, below",
        "key[count], cumulative[count] = nest.part_base[nest.parts_from[x]] * m + against, below",
        tests=few("conditioned"),
    ),
    mutation(
        "nest: tokens that have not arrived lose their rate",
        "transport/nest/states.py",
        "(A[1, i, j] + rate * low) * high",
        "A[1, i, j] * high",
        tests=few("sequential"),
    ),
    mutation(
        "nest: pairs by the rate of the first draft alone",
        "transport/nest/laws.py",
        "bonus = 1.0 / (1.0 + (q[top] - q))",
        "bonus = np.ones(q.size)",
        tests=few("pairs"),
    ),
    mutation(
        "nest: a coarse quadrature",
        "transport/nest/laws.py",
        "ERROR = 1e-12",
        "ERROR = 1e-4",
        tests=few("sequential"),
    ),
    mutation(
        "nest: the fixed set takes part in the bound twice",
        PLAN,
        "float(p[fixed].sum() + wanted.sum())",
        "float(2.0 * p[fixed].sum() + wanted.sum())",
        tests=few("fixed"),
    ),
    mutation(
        "nest: groups without the rates of their tokens",
        "transport/nest/series.py",
        "            b += slope * a\n",
        "",
        tests=f"{NEST}::test_a_finer_quadrature_finds_the_same_marginal[8]",
        compiled=True,
    ),
    mutation(
        "nest: a coarser tolerance is kept quiet",
        "transport/nest/build.py",
        'bool(progress["limit"] > limit)',
        "False",
        tests=f"{NEST}::test_past_the_limit_the_plan_is_coarser_and_still_lossless",
        compiled=True,
    ),
]
