"""Faults to put into the verifiers and what they rest on; `tests/mutations.py` runs them."""

from tests.mutant import mutation

IID, SEQ, GREEDY = (
    "WithReplacement(n=2)",
    "WithoutReplacement(n=2)",
    "TopThenSampled(top=1, sampled=1, replacement=False)",
)
TOP = "TopThenSampled(top=1, sampled=2, replacement=True)"
RRS, WITHOUT = (
    "verifiers/recursive_rejection/with_replacement.py",
    "verifiers/recursive_rejection/without_replacement.py",
)
KSEQ, HUB, CHILDREN = "verifiers/kseq.py", "verifiers/spechub.py", "verifiers/deterministic.py"
OPTIMAL = "verifiers/optimal.py"
MATCHING, NODE, DRAW = "verifiers/token_matching.py", "verifiers/node.py", "verifiers/residual.py"
RESIDUAL_TESTS = "tests/core/verifiers/test_residual.py"
LARGE_TESTS = "tests/core/verifiers/test_large_vocabularies.py"


def lossless(rule, scheme):
    test = "test_output_law_is_lossless_and_acceptance_exact"
    return f"tests/core/verifiers/test_losslessness.py::{test}[{rule}-{scheme}]"


def follows(rule, scheme):
    return f"tests/core/verifiers/test_losslessness.py::test_verify_follows_output_law[{rule}-{scheme}]"


def fault(name):
    return f"tests/core/verifiers/test_faults.py::test_{name}"


def strict(rule):
    return f"{fault('zero_probability_is_rejected_at_u_zero')}[{rule}]"


VERIFIERS = [
    # recursive rejection
    mutation(
        "rrs: a zero-probability draft passes at u = 0",
        RRS,
        "(mass * (w[x] / rest)) < weight",
        "(mass * (w[x] / rest)) <= weight",
        tests=strict("rrs-WithReplacement(n=2)-[0, 0]"),
    ),
    mutation(
        "rrs: duplicates are judged once",
        RRS,
        "enumerate(sampled):",
        "enumerate(dict.fromkeys(sampled)):",
        tests=follows("rrs", IID),
    ),
    mutation(
        "rrs: the law skips duplicates",
        RRS,
        "        for x in sampled:",
        "        for x in dict.fromkeys(sampled):",
        tests=lossless("rrs", IID),
    ),
    mutation(
        "rrs without: stale q, the second draft judged by the first one's law",
        RRS,
        "rest = rest_mass(w, np.array(sampled[: index + 1]))",
        "rest = self.node.total",
        tests=follows("rrs_without", SEQ),
    ),
    mutation(
        "rrs without: stale q in the law",
        RRS,
        "                w[x] = 0.0",
        "                pass",
        tests=lossless("rrs_without", SEQ),
    ),
    mutation(
        "rrs: the residual is not renormalised",
        RRS,
        "r = left / left.sum()",
        "r = left",
        tests=lossless("rrs", IID),
    ),
    mutation(
        "rrs: residual |p - q|",
        RRS,
        "np.maximum(r - proposal, 0.0)",
        "np.abs(r - proposal)",
        tests=lossless("rrs", IID),
    ),
    mutation(
        "rrs: the level rises as if nothing had been rejected before",
        RRS,
        "next_level = level + mass / rest",
        "next_level = level + 1.0 / rest",
        tests=follows("rrs", "WithReplacement(n=3)"),
    ),
    mutation(
        "rrs: after rejections the token is drawn from p",
        RRS,
        "draw(residual(p, w, level), rng.random())",
        "draw(p, rng.random())",
        tests=follows("rrs", IID),
    ),
    mutation(
        "rrs: the uniform of the last acceptance is used again for the residual",
        RRS,
        "if rng.random() * (mass",
        "if (u := rng.random()) * (mass",
        "draw(residual(p, w, level), rng.random())",
        "draw(residual(p, w, level), u)",
        tests=fault("the_residual_does_not_see_the_uniform_of_the_acceptance"),
    ),
    mutation(
        "rrs: one uniform for all drafts of a node",
        RRS,
        "        for index, x in enumerate(sampled):",
        "        u = rng.random()\n        for index, x in enumerate(sampled):",
        "if rng.random() * (mass",
        "if u * (mass",
        tests=fault("a_fresh_uniform_for_every_draft"),
    ),
    mutation(
        "rrs: writes into the plan's weights",
        RRS,
        "self.node.p, 1.0, self.node.w.copy()",
        "self.node.p, 1.0, self.node.w",
        tests=lossless("rrs_without", SEQ),
    ),
    mutation(
        "rrs: 0/0 when the target's mass is used up",
        RRS,
        "if next_mass == 0.0:",
        "if next_mass < 0.0:",
        tests=fault("one_ulp_apart"),
    ),
    mutation(
        "rrs: mass used up, any draft accepted",
        RRS,
        "                if weight > 0.0:\n",
        "                if weight >= 0.0:\n",
        tests=fault("drafts_that_only_rounding_can_tell_from_impossible"),
    ),
    mutation(
        "rrs: the acceptance forgets the fixed drafts",
        RRS,
        "1.0 - rejection_masses(node)[-1] + node.fixed_mass",
        "1.0 - rejection_masses(node)[-1]",
        tests=lossless("rrs", TOP),
    ),
    mutation(
        "rrs: the acceptance counts the fixed drafts as sampled",
        RRS,
        "for _ in range(node.sampled):",
        "for _ in range(node.scheme.drafts):",
        tests=lossless("rrs", TOP),
    ),
    mutation(
        "rrs without: said to be lossless for independent drafts",
        WITHOUT,
        'scheme.draws("sequential")',
        'scheme.draws("sequential") or scheme.draws("independent")',
        tests="tests/core/verifiers/test_interface.py::test_support",
    ),
    mutation(
        "rrs without: acceptance of one draft less",
        WITHOUT,
        "rejection_exact(table, sampled)",
        "rejection_exact(table, min(sampled, 1))",
        tests=lossless("rrs_without", SEQ),
    ),
    # acceptance without replacement
    mutation(
        "histories: a token may be rejected twice",
        "verifiers/recursive_rejection/exact.py",
        "rejected[x] = True",
        "rejected[x] = False",
        tests=lossless("rrs_without", "WithoutReplacement(n=3)"),
    ),
    mutation(
        "histories: every draft is rejected",
        "verifiers/recursive_rejection/exact.py",
        "drawn * w[x] - kept * max(p[x] - level * w[x], 0.0)",
        "drawn * w[x]",
        tests=RESIDUAL_TESTS,
    ),
    mutation(
        "table: tokens that are never drafted are left out of Z",
        "verifiers/residual_table.py",
        "np.concatenate(([never], p[::-1]))",
        "np.concatenate(([0.0], p[::-1]))",
        tests=RESIDUAL_TESTS,
    ),
    mutation(
        "bracket: the terms x = y stay in the upper bound",
        "verifiers/recursive_rejection/bracket.py",
        "(chance * above - own_above) / mass_b",
        "(chance * above) / mass_b",
        tests=f"{LARGE_TESTS}::test_bracket_is_narrow_at_any_size",
        compiled=True,
    ),
    mutation(
        "bracket: lower bound from the wrong end of the group",
        "verifiers/recursive_rejection/bracket.py",
        "mass_at(level_b + mass_a * gap,",
        "mass_at(level_a + mass_b * gap * 0.9,",
        tests=f"{LARGE_TESTS}::test_three_drafts_are_bracketed",
        compiled=True,
    ),
    mutation(
        "sampled histories: a heavy token may be rejected twice",
        "verifiers/recursive_rejection/sampled.py",
        "left_w[chosen] = 0.0",
        "left_w[chosen] = heavy_w[chosen]",
        tests=f"{LARGE_TESTS}::test_intervals_from_sampled_histories_cover",
        compiled=True,
    ),
    mutation(
        "sampled histories: an interval far too narrow",
        "verifiers/recursive_rejection/sampled.py",
        "_STUDENT * means.std(ddof=1) / np.sqrt(_CUBES)",
        "_STUDENT * means.std(ddof=1) / _CUBES",
        tests=f"{LARGE_TESTS}::test_intervals_from_sampled_histories_cover",
        compiled=True,
    ),
    # K-SEQ
    mutation(
        "kseq: rho one per cent too small",
        KSEQ,
        "    return high\n",
        "    return max(1.0, 0.99 * high)\n",
        tests=lossless("kseq", IID),
    ),
    mutation(
        "kseq: drafts are judged without rho",
        KSEQ,
        "(self.rho * (w[x] / total)) < p[x]",
        "(w[x] / total) < p[x]",
        tests=follows("kseq", IID),
    ),
    mutation(
        "kseq: a zero-probability draft passes at u = 0",
        KSEQ,
        "(self.rho * (w[x] / total)) < p[x]",
        "(self.rho * (w[x] / total)) <= p[x]",
        tests=strict("kseq-WithReplacement(n=2)-[0, 0]"),
    ),
    mutation(
        "kseq: residual of one draft",
        KSEQ,
        "np.maximum(p - taken * tries, 0.0)",
        "np.maximum(p - taken, 0.0)",
        tests=lossless("kseq", IID),
    ),
    mutation(
        "kseq: verify draws from the residual of one draft",
        KSEQ,
        "share = self.accepted / self.beta",
        "share = 1.0",
        tests=follows("kseq", IID),
    ),
    mutation(
        "kseq: acceptance as if all drafts were sampled",
        KSEQ,
        "self.node.sampled * np.log1p(-self.beta)",
        "self.node.scheme.drafts * np.log1p(-self.beta)",
        tests=lossless("kseq", TOP),
    ),
    # greedy, SpecHub
    mutation(
        "greedy: said to be lossless for more than one sampled draft, as RRS is",
        RRS,
        'scheme.draws("independent") and scheme.sampled_drafts <= self.most',
        'scheme.draws("independent")',
        tests="tests/core/verifiers/test_interface.py::test_support",
    ),
    mutation(
        "spechub: (hub, x) serves x as if (x, hub) had not",
        HUB,
        "q[hub] * (w[x] / total), p[x] - q[x]",
        "q[hub] * (w[x] / total), p[x]",
        tests=follows("spechub", "SpecHubPairs()"),
    ),
    mutation(
        "spechub: the two orders of a pair are mixed up",
        HUB,
        "            if row[0] == hub:  #",
        "            if row[0] != hub:  #",
        tests=follows("spechub", "SpecHubPairs()"),
    ),
    mutation(
        "spechub: the law mixes the two orders up",
        HUB,
        "        if row[0] == hub:\n",
        "        if row[0] != hub:\n",
        tests=lossless("spechub", "SpecHubPairs()"),
    ),
    mutation(
        "spechub: the residual is p",
        HUB,
        "level = 1.0 / total",
        "level = 0.0",
        tests=follows("spechub", "SpecHubPairs()"),
    ),
    # deterministic children, token matching
    mutation(
        "deterministic: rejected children keep their mass",
        CHILDREN,
        "mass = rest_mass(p, np.array(row[: index + 1]))",
        "mass = 1.0",
        tests=follows("deterministic", "Deterministic(n=2)"),
    ),
    mutation(
        "deterministic: a zero-probability child passes at u = 0",
        CHILDREN,
        "rng.random() * mass < p[x]",
        "rng.random() * mass <= p[x]",
        tests=strict("deterministic-Deterministic(n=2)-[0, 1]"),
    ),
    mutation(
        "deterministic: only the last child is zeroed",
        CHILDREN,
        "left[row] = 0.0",
        "left[row[-1:]] = 0.0",
        tests=follows("deterministic", "Deterministic(n=2)"),
    ),
    mutation(
        "deterministic: writes into p",
        CHILDREN,
        "left = p.copy()",
        "left = p",
        tests=fault("inputs_are_never_written"),
    ),
    mutation(
        "token matching: a fresh target draw for every draft",
        MATCHING,
        "return self.node.emit(int(draw(self.node.p, rng.random())), row)",
        "tokens = [int(draw(self.node.p, rng.random())) for _ in row]\n"
        "        return self.node.emit(next((t for t, x in zip(tokens, row) if t == x), tokens[-1]), row)",
        tests=fault("one_target_draw_for_all_drafts"),
    ),
    mutation(
        "token matching: one draft counted",
        "schemes/independent.py",
        "-np.expm1(self.n * np.log1p",
        "-np.expm1(1 * np.log1p",
        tests=lossless("token_matching", IID),
    ),
    mutation(
        "inclusion: the race ends too early",
        "schemes/without_replacement/inclusion.py",
        "log((40.0 + 3 * n) / rest, 2)",
        "log(4.0 / rest, 2)",
        tests=lossless("token_matching", SEQ),
    ),
    mutation(
        "inclusion: the start of the race is cut off",
        "schemes/without_replacement/inclusion.py",
        "log(1e-17 / total, 2)",
        "log(1e-3 / total, 2)",
        tests=lossless("token_matching", SEQ),
    ),
    # optimal
    mutation(
        "optimal: the selected draft is judged by q, not by the law of the selection",
        OPTIMAL,
        "rng.random() * r[x] < p[x]",
        "rng.random() * self.node.q[x] < p[x]",
        tests=follows("optimal", IID),
    ),
    mutation(
        "optimal: the first draft is selected",
        OPTIMAL,
        "x = sampled[self.selection.select(np.array(sampled), rng)]",
        "x = sampled[0 * self.selection.select(np.array(sampled), rng)]",
        tests=follows("optimal", IID),
    ),
    mutation(
        "optimal: residual p - q",
        OPTIMAL,
        "residual(p, r, 1.0)",
        "residual(p, self.node.q, 1.0)",
        tests=follows("optimal", IID),
    ),
    mutation(
        "optimal: residual p - q in the law",
        OPTIMAL,
        "np.maximum(p - r, 0.0)",
        "np.maximum(p - self.node.q, 0.0)",
        tests=lossless("optimal", IID),
    ),
    mutation(
        "optimal: a zero-probability draft passes at u = 0",
        OPTIMAL,
        "rng.random() * r[x] < p[x]",
        "rng.random() * r[x] <= p[x]",
        tests=strict("optimal-WithReplacement(n=2)-[0, 0]"),
    ),
    mutation(
        "optimal: acceptance of a single draft",
        "transport/optimal.py",
        "np.minimum(off, plan.marginal[curtain.tokens])",
        "np.minimum(off, curtain.w)",
        tests=lossless("optimal", IID),
    ),
    mutation(
        "priorities: the lowest label wins",
        "transport/priority.py",
        "if best < 0 or own > best_key:",
        "if best < 0 or own < best_key:",
        tests=follows("optimal", IID),
    ),
    mutation(
        "check: NaN passes the guard",
        "distributions.py",
        "bad = ~np.isfinite(result) | (result < 0)",
        "bad = result < 0",
        tests=fault("not_finite_rows_raise"),
    ),
    # what all rules share
    mutation(
        "verdict: the last of equal drafts",
        NODE,
        "Verdict(token, row.index(token) if token in row else -1)",
        "Verdict(token, len(row) - 1 - row[::-1].index(token) if token in row else -1)",
        tests=fault("exactly_one_token"),
    ),
    mutation(
        "verdict: a residual draw on a draft does not count",
        NODE,
        "Verdict(token, row.index(token) if token in row else -1)",
        "Verdict(token, row.index(token) if token in row and token not in self.fixed else -1)",
        tests=fault("exactly_one_token"),
    ),
    mutation(
        "node: drafts of probability 0 are let in",
        NODE,
        "and all(0 <= x < self.w.size and self.w[x] > 0.0 for x in sampled)",
        "and all(0 <= x < self.w.size for x in sampled)",
        tests=fault("nothing_is_drawn_before_the_drafts_are_checked"),
    ),
    mutation(
        "node: repeated drafts are let in where drafts differ",
        NODE,
        "(len(set(row)) == count or not self.scheme.distinct)",
        "(len(set(row)) <= count)",
        tests=fault("nothing_is_drawn_before_the_drafts_are_checked"),
    ),
    mutation(
        "node: an empty residual emits the last draft even where p is 0",
        NODE,
        "        if self.p[judged[-1]] == 0.0:\n            return law + self.p\n",
        "",
        tests=lossless("kseq", "WithReplacement(n=1)"),
    ),
    mutation(
        "draw: a token of weight 0 at the end",
        DRAW,
        "            if weights[x] > 0.0:\n                token = x",
        "            if True:\n                token = x",
        tests=RESIDUAL_TESTS,
    ),
    mutation(
        "draw: no block but the first is looked into",
        DRAW,
        "chosen, below, reached = b, reached, reached + mass[b]",
        "chosen, below, reached = b, 0.0, reached + mass[b]",
        tests=RESIDUAL_TESTS,
    ),
    mutation(
        "rest: what is gone is counted",
        DRAW,
        "        first = last + 1",
        "        first = last",
        tests=RESIDUAL_TESTS,
    ),
    mutation(
        "registry: a rule takes drafts it is not lossless for",
        "verifiers/interface.py",
        "if not self.supports(scheme):",
        "if False:",
        tests=fault("argmax_drafts_are_a_kind_of_their_own"),
    ),
    # top tokens
    mutation(
        "top tokens: the last one of equals",
        "_leading.py",
        "if q[x] > largest[m - 1]:",
        "if q[x] >= largest[m - 1]:",
        tests="tests/core/schemes/test_schemes.py::test_top_tokens_break_ties_by_lowest_id",
    ),
    mutation(
        "top tokens: a block is looked at only if its first entry is large",
        "_leading.py",
        "    for i in range(x.size):",
        "    for i in range(1):",
        tests="tests/core/schemes/test_schemes.py::test_many_top_tokens_are_found_as_a_few_are",
    ),
]
