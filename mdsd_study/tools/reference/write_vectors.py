"""Write the reference vectors: inputs and exact outputs of one step, for implementations in any language.

The file is part of the book (``book/_extra/vectors/``); its format is described on the page for engine maintainers. A
change of the format, or of a number by more than rounding, needs a new :data:`VERSION`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mdsd_core
from mdsd_core.schemes import Deterministic, Scheme, SpecHubPairs, WithoutReplacement, WithReplacement, greedy
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier
from mdsd_study.tools.notebooks.project import HERE

#: The version of the format and of the set of cases.
VERSION = 1
#: The largest difference that is put down to rounding.
TOLERANCE = 1e-12
#: Where the file lies, below ``book/``.
PLACE = f"_extra/vectors/mdsd-vectors-{VERSION}.json"

#: name -> (p, q): plain ones, and those at which implementations have failed.
PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "plain": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "four tokens": ([0.4, 0.3, 0.2, 0.1], [0.1, 0.35, 0.15, 0.4]),
    "equal": ([0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
    "duplicates count": ([0.4, 0.6, 0.0], [0.2, 0.2, 0.6]),
    "ties": ([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]),
    "ties in q": ([1.0, 0.0, 0.0], [0.4, 0.4, 0.2]),
    "disjoint": ([0.0, 0.0, 0.5, 0.5], [0.75, 0.25, 0.0, 0.0]),
    "target certain": ([0.0, 1.0, 0.0], [0.5, 0.25, 0.25]),
    "draft certain": ([0.5, 0.25, 0.25], [1.0, 0.0, 0.0]),
    "both certain of different tokens": ([1.0, 0.0], [0.0, 1.0]),
    "both certain of the same token": ([0.0, 1.0], [0.0, 1.0]),
    "support of two": ([0.25, 0.5, 0.25, 0.0], [0.5, 0.0, 0.5, 0.0]),
    "skewed": ([0.9, 0.09, 0.009, 0.001], [0.001, 0.009, 0.09, 0.9]),
    "one token": ([1.0], [1.0]),
}

#: name -> (scheme of n drafts, the rules whose law given the drafts is unique).
SCHEMES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "with_replacement": (WithReplacement, ("rrs", "kseq", "token_matching")),
    "without_replacement": (WithoutReplacement, ("rrs_without", "token_matching")),
    "greedy": (greedy, ("greedy", "token_matching")),
    "spechub": (lambda n: SpecHubPairs(), ("spechub", "token_matching")),
    "deterministic": (Deterministic, ("deterministic", "token_matching")),
}


def _case(pair: str, name: str, n: int) -> dict[str, Any]:
    make, rules = SCHEMES[name]
    scheme: Scheme = make(n)
    p, q = (np.array(values) for values in PAIRS[pair])
    tuples, chances = scheme.enumerate(q)
    drafts = [[int(x) for x in row if x >= 0] for row in tuples]
    optimum = optimal_acceptance(p, q, scheme)
    outputs = {}
    for rule in rules:
        plan = verifier(rule).prepare(p, q, scheme)
        laws = [plan.output_law(row) for row in tuples]
        accepted = sum(chance * law[sorted(set(row))].sum() for chance, law, row in zip(chances, laws, drafts))
        outputs[rule] = {"acceptance": float(accepted), "laws": [law.tolist() for law in laws]}
    return {
        "id": f"{pair}, {name}, n={n}",
        "p": p.tolist(),
        "q": q.tolist(),
        "scheme": name,
        "n": n,
        "drafts": drafts,
        "probabilities": chances.tolist(),
        "optimal_rate": optimum.rate,
        "verifiers": outputs,
    }


def _cases() -> Iterator[dict[str, Any]]:
    for pair, (p, _) in PAIRS.items():
        for name in SCHEMES:
            for n in (1, 2, 3):
                if (name == "spechub" and n != 2) or (n == 3 and len(p) == 4 and name == "with_replacement"):
                    continue
                yield _case(pair, name, n)


def vectors() -> dict[str, Any]:
    """The content of the file."""
    return {
        "format": "mdsd-vectors",
        "version": VERSION,
        "made_by": f"mdsd_core {mdsd_core.__version__}",
        "tolerance": TOLERANCE,
        "cases": list(_cases()),
    }


def main() -> None:
    """Write the file, one case a line."""
    content = vectors()
    cases = content.pop("cases")
    head = json.dumps(content)[:-1]
    lines = ",\n".join(json.dumps(case) for case in cases)
    path: Path = HERE.book / PLACE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{path.relative_to(HERE.root)}: {len(cases)} cases, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
