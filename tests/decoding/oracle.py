"""Exact laws of the loop: an oracle that answers every random choice in every possible way.

The oracle sits at the level of decisions: drafts by ``Scheme.enumerate``, verdicts by ``output_law``, selections by
``selection_law``, coins and tokens by their weights. (That samplers and ``verify`` follow these laws is tested, by
exact integration over their uniforms, beside them.)
"""

import itertools
from collections import defaultdict

import numpy as np

from mdsd_core.decoding.loop import DecodingLoop
from mdsd_core.decoding.request import Request
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.randomness import Choices
from mdsd_core.trees.selection import OptimalSelection, selects
from mdsd_core.verifiers import Optimal, Verdict


class Oracle(Choices):
    """Plays a script of answers, then always the first possible answer; keeps the weight and what else was possible."""

    def __init__(self, script, memo):
        self.script, self.memo = script, memo
        self.weight, self.taken, self.counts = 1.0, [], []

    def _choose(self, weights):
        options = np.flatnonzero(weights)
        at = len(self.taken)
        answer = self.script[at] if at < len(self.script) else 0
        self.taken.append(answer)
        self.counts.append(options.size)
        self.weight *= float(weights[options[answer]])
        return int(options[answer])

    def _remember(self, key, make):
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def drafts(self, scheme, q):
        tuples, weights = self._remember((scheme, q.tobytes()), lambda: scheme.enumerate(q))
        return tuples[self._choose(weights)]

    def verdict(self, plan, drafts):
        # the plan is kept in the memo, so its id cannot be taken by another one
        law = self._remember((id(plan), drafts.tobytes()), lambda: (plan.output_law(drafts), plan))[0]
        token = self._choose(law)
        index = np.flatnonzero(drafts == token)
        return Verdict(token, int(index[0]) if index.size else -1)

    def selected(self, selector, drafts):
        key = (id(selector), drafts.tobytes())
        return self._choose(self._remember(key, lambda: (selector.selection_law(drafts), selector))[0])

    def accept(self, probability):
        return self._choose(np.array([probability, 1.0 - probability])) == 0

    def token(self, weights):
        return self._choose(weights / weights.sum())


def enumerate_runs(run):
    """All (weight, result) of ``run(oracle)``, every branch once."""
    memo, stack = {}, [[]]
    while stack:
        script = stack.pop()
        oracle = Oracle(script, memo)
        result = run(oracle)
        yield oracle.weight, result
        for at in range(len(script), len(oracle.taken)):
            stack.extend([*oracle.taken[:at], other] for other in range(1, oracle.counts[at]))


class Remembering:
    """A verifier whose plans are made once: enumeration asks for the same ones again and again."""

    def __init__(self, rule):
        self.rule, self.name, self.plans = rule, rule.name, {}
        if hasattr(rule, "tolerance"):
            self.tolerance = rule.tolerance

    def supports(self, scheme):
        return self.rule.supports(scheme)

    def prepare(self, p, q, scheme):
        key = (p.tobytes(), q.tobytes(), scheme)
        if key not in self.plans:
            self.plans[key] = self.rule.prepare(p, q, scheme)
        return self.plans[key]


class Selecting:
    """The optimal verifier for one node, from the plan the path rule uses: select, accept with min(1, p/r), else
    resample from what p leaves over r."""

    name = "optimal"
    tolerance = Optimal.tolerance

    def __init__(self):
        self.plans = {}

    def supports(self, scheme):
        return selects(scheme)

    def prepare(self, p, q, scheme):
        key = (p.tobytes(), q.tobytes(), scheme)
        if key not in self.plans:
            self.plans[key] = _SelectingPlan(p, OptimalSelection(p, q, scheme))
        return self.plans[key]


class _SelectingPlan:
    def __init__(self, p, plan):
        self.p, self.plan = p, plan

    def output_law(self, drafts):
        p, r = self.p, self.plan.marginal
        law, rejected = np.zeros(p.size), 0.0
        for index, won in zip(drafts, self.plan.selection_law(drafts), strict=True):
            accepted = min(1.0, p[index] / r[index]) if won > 0 else 0.0
            law[index] += won * accepted
            rejected += won * (1 - accepted)
        rest = np.maximum(p - r, 0.0)
        return law + rejected * (rest / rest.sum() if rest.sum() > 0 else p)


def make_loop(target, drafter, prompt, choices, tree, family, rule, *, count=100, **settings):
    request = Request(0, list(prompt), len(prompt), count, choices)
    return DecodingLoop(target, drafter, [request], LoopSettings(tree, family, rule, **settings)), request


def law_of_rounds(make, length):
    """The law of the first `length` tokens, round by round.

    ``make(oracle, context)`` returns a loop and its request, after the new tokens `context`. A round depends on the
    committed tokens alone, so the law of one round in each context is all that is needed.
    """
    rounds = {}

    def one_round(context):
        if context not in rounds:
            law = defaultdict(float)

            def run(oracle):
                loop, request = make(oracle, context)
                loop.step()
                return tuple(request.new_tokens), request.finish_reason

            for weight, result in enumerate_runs(run):
                law[result] += weight
            rounds[context] = law
        return rounds[context]

    result = defaultdict(float)

    def go(context, weight):
        if len(context) >= length:
            result[context[:length]] += weight
            return
        for (tokens, reason), probability in one_round(context).items():
            after = context + tokens
            if reason == "eos" and len(after) <= length:
                result[after] += weight * probability
            else:
                go(after, weight * probability)

    go((), 1.0)
    return result


def autoregressive_law(p, prompt, length, V, eos=()):
    """The law of the first `length` tokens of plain sampling; texts end after an end-of-sequence token."""
    result = defaultdict(float)
    for tokens in itertools.product(range(V), repeat=length):
        weight, text = 1.0, []
        for token in tokens:
            weight *= float(p([*prompt, *text])[token])
            text.append(token)
            if token in eos:
                break
        rest = V ** (length - len(text))
        result[tuple(text)] += weight / rest  # met once for each ending that was cut off
    return result


def distance(a, b):
    return 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in {*a, *b})
