"""Check an implementation of the verifiers against the reference vectors. Plain Python, no packages.

    python check_vectors.py mdsd-vectors-1.json

Replace the functions in `RULES` by calls into your own code. Each gets p, q (lists), n and one tuple of drafts, and
returns the law of the emitted token given these drafts. If your code only *draws* tokens, draw many and compare their
frequencies with the law: 4 million draws see a difference of 0.002 in a probability with certainty for all purposes.
"""

import json
import sys


def normalised(weights):
    """The weights over their sum."""
    total = sum(weights)
    return [weight / total for weight in weights]


def positive_part(p, q):
    """``max(0, p - q)``, token by token."""
    return [max(0.0, a - b) for a, b in zip(p, q)]


def point(x, size):
    """The law that is certain of x."""
    return [1.0 if y == x else 0.0 for y in range(size)]


def mixed(share, law, other):
    """One law with probability `share`, else the other."""
    return [share * a + (1.0 - share) * b for a, b in zip(law, other)]


def recursive_rejection(p, q, drafts, replacement):
    """Accept x with min(1, r_x/q_x); else r becomes (r - q)_+ normalised, and q loses x if drafts all differ."""
    if not drafts:
        return p
    x, rest = drafts[0], drafts[1:]
    accepted = min(1.0, p[x] / q[x])
    left = positive_part(p, q)
    if accepted == 1.0 or sum(left) == 0.0:  # no mass is left: in exact arithmetic x was accepted for certain
        return point(x, len(p))
    following = q
    if not replacement and rest:
        following = normalised([0.0 if y == x else value for y, value in enumerate(q)])
    return mixed(accepted, point(x, len(p)), recursive_rejection(normalised(left), following, rest, replacement))


def kseq(p, q, n, drafts):
    """Accept the first draft with ``rho U < p/q``, with the smallest rho that is lossless."""

    def beta(rho):
        return min(1.0, sum(min(b, a / rho) for a, b in zip(p, q)))

    low, high = 1.0, float(n)
    for _ in range(200):
        middle = (low + high) / 2.0
        if 1.0 - (1.0 - beta(middle)) ** n > middle * beta(middle):
            low = middle
        else:
            high = middle
    rho, one = high, beta(high)
    share = (1.0 - (1.0 - one) ** n) / one if one > 0.0 else 0.0
    left = positive_part(p, [share * min(a / rho, b) for a, b in zip(p, q)])
    law = normalised(left) if sum(left) > 1e-14 else point(drafts[-1], len(p))  # nothing left: never reached
    for x in reversed(drafts):
        law = mixed(min(1.0, p[x] / (rho * q[x])), point(x, len(p)), law)
    return law


def top(q, m):
    """The m most probable tokens, lowest id first among equals, none of probability 0."""
    return sorted((x for x in range(len(q)) if q[x] > 0.0), key=lambda x: (-q[x], x))[:m]


def without(q, tokens):
    """The weights with these tokens at 0, not normalised."""
    return [0.0 if x in tokens else value for x, value in enumerate(q)]


def greedy(p, q, n, drafts):
    """Judge the drawn draft alone, by its law off the top n - 1; the residual keeps p on these."""
    fixed = top(q, n - 1)
    if len(drafts) == len(fixed):  # the support is no larger than that: nothing was sampled
        return p
    return recursive_rejection(p, normalised(without(q, fixed)), drafts[len(fixed) :], True)


def spechub(p, q, n, drafts):
    """(x, hub) serves x first, (hub, x) the rest of x, what is left goes to the residual and the hub."""
    (hub,) = top(q, 1)
    others = [x for x in drafts if x != hub]
    if not others:
        return p
    (x,) = others
    both = normalised(without(q, [hub]))  # of the pairs (x, hub) and (hub, x) together
    first = min(p[x], q[x])  # what (x, hub) serves
    accepted = first / q[x] if drafts[0] == x else (min(p[x], both[x]) - first) / (both[x] * q[hub])
    left = positive_part(p, both)
    return mixed(min(1.0, accepted), point(x, len(p)), normalised(left) if sum(left) > 0.0 else point(hub, len(p)))


RULES = {
    "rrs": lambda p, q, n, drafts: recursive_rejection(p, q, drafts, True),
    "rrs_without": lambda p, q, n, drafts: recursive_rejection(p, q, drafts, False),
    "kseq": kseq,
    "greedy": greedy,
    "spechub": spechub,
    "deterministic": lambda p, q, n, drafts: p,  # try them in turn, zero the rejected ones: the law is p for any drafts
    "token_matching": lambda p, q, n, drafts: p,  # one draw from p for all drafts
}


def check(content, rules=None):
    """Yield a line for every number that differs by more than the tolerance of the file."""
    tolerance = content["tolerance"]
    for case in content["cases"]:
        p, q, n = case["p"], case["q"], case["n"]
        for name, expected in case["verifiers"].items():
            acceptance, emitted = 0.0, [0.0] * len(p)
            for drafts, chance, law in zip(case["drafts"], case["probabilities"], expected["laws"]):
                mine = (rules or RULES)[name](p, q, n, drafts)
                if max(abs(a - b) for a, b in zip(mine, law)) > tolerance:
                    yield f"{case['id']}, {name}, drafts {drafts}: {mine} is not {law}"
                acceptance += chance * sum(mine[x] for x in set(drafts))
                emitted = [total + chance * value for total, value in zip(emitted, mine)]
            if max(abs(a - b) for a, b in zip(emitted, p)) > tolerance:
                yield f"{case['id']}, {name}: not lossless, it emits {emitted} in place of {p}"
            if abs(acceptance - expected["acceptance"]) > tolerance:
                yield f"{case['id']}, {name}: acceptance {acceptance} is not {expected['acceptance']}"
            if acceptance > case["optimal_rate"] + tolerance:
                yield f"{case['id']}, {name}: acceptance {acceptance} exceeds the optimum {case['optimal_rate']}"


def main():
    """Check the file named on the command line."""
    with open(sys.argv[1], encoding="utf-8") as file:
        content = json.load(file)
    if (content["format"], content["version"]) != ("mdsd-vectors", 1):
        sys.exit(f"this checker reads version 1 of mdsd-vectors, not {content['format']} {content['version']}")
    found = list(check(content))
    print("\n".join(found) or f"{len(content['cases'])} cases agree")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
