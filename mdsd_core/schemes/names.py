"""Schemes by name and by number of drafts: a tree may draw a different number at each node.

One grammar for the loop, the sweeps and the command line: the names in :data:`FAMILIES`, and ``topM_sampled`` and
``topM_replacement``, the M most probable tokens and the others sampled without or with replacement.
"""

import dataclasses
import re
from collections.abc import Callable
from functools import partial

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    Scheme,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)

#: Number of drafts n -> scheme.
Family = Callable[[int], Scheme]

_TOP = re.compile(r"top(\d+)_(sampled|replacement)")


def _top1_sampled(n: int) -> Scheme:
    return TopThenSampled(1, n - 1) if n > 1 else WithoutReplacement(1)


def _top_sampled(m: int, how: str, n: int) -> Scheme:
    if n <= m:
        raise ValueError(f"scheme 'top{m}_{how}' samples behind {m} drafts, but a node of the tree has {n} places")
    return TopThenSampled(m, n - m, how == "replacement")


FAMILIES: dict[str, Family] = {
    "with_replacement": WithReplacement,
    "without_replacement": WithoutReplacement,
    "distinct": DistinctConditioned,
    "greedy": greedy,
    "top1_sampled": _top1_sampled,
    "spechub": lambda n: SpecHubPairs(),
    "deterministic": Deterministic,
}


def scheme_family(scheme: str | Scheme | Family) -> Family:
    """The function from a number of drafts to a scheme.

    Parameters
    ----------
    scheme : str, Scheme or callable
        A name of the grammar; a scheme, whose ``n`` is replaced where a node draws another number; or such a function.

    Raises
    ------
    ValueError
        For an unknown name, or (when the function is called) if the scheme cannot draw that number.

    Examples
    --------
    >>> scheme_family("with_replacement")(3)
    WithReplacement(n=3)
    >>> scheme_family(WithReplacement(4))(2)
    WithReplacement(n=2)
    >>> scheme_family("top2_replacement")(4)
    TopThenSampled(top=2, sampled=2, replacement=True)
    >>> scheme_family("spechub")(3)
    Traceback (most recent call last):
        ...
    ValueError: scheme spechub draws 2 drafts, but a node of the tree has 3 places
    """
    if isinstance(scheme, str):
        top = _TOP.fullmatch(scheme)
        if scheme in FAMILIES:
            scheme = FAMILIES[scheme]
        elif top is None:
            names = ", ".join((*FAMILIES, "topM_sampled", "topM_replacement"))
            raise ValueError(f"scheme must be one of {names}, got {scheme!r}")
        else:
            scheme = partial(_top_sampled, int(top[1]), top[2])

    def family(n: int) -> Scheme:
        found = scheme if isinstance(scheme, Scheme) else scheme(n)
        if found.drafts != n and dataclasses.is_dataclass(found) and hasattr(found, "n"):
            found = dataclasses.replace(found, n=n)
        if found.drafts != n:
            raise ValueError(f"scheme {found.name} draws {found.drafts} drafts, but a node of the tree has {n} places")
        return found

    return family


def scheme_of(name: str, n: int) -> Scheme | None:
    """The scheme of that name with n drafts, or None where it has none (``spechub`` draws pairs only).

    >>> scheme_of("top2_sampled", 3) == scheme_of("greedy", 3), scheme_of("spechub", 3) is None
    (True, True)
    """
    family = scheme_family(name)
    try:
        return family(n)
    except ValueError:
        return None
