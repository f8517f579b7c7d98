"""Schemes by name and by number of drafts: a tree may draw a different number at each node."""

import dataclasses
from collections.abc import Callable

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


def _spechub(n: int) -> Scheme:
    if n != 2:
        raise ValueError(f"scheme 'spechub' draws pairs: every node of the tree needs 2 children, got {n}")
    return SpecHubPairs()


def _top1_sampled(n: int) -> Scheme:
    return TopThenSampled(1, n - 1) if n > 1 else WithoutReplacement(1)


FAMILIES: dict[str, Family] = {
    "with_replacement": WithReplacement,
    "without_replacement": WithoutReplacement,
    "distinct": DistinctConditioned,
    "greedy": greedy,
    "top1_sampled": _top1_sampled,
    "spechub": _spechub,
    "deterministic": Deterministic,
}


def scheme_family(scheme: str | Scheme | Family) -> Family:
    """The function from a number of drafts to a scheme.

    Parameters
    ----------
    scheme : str, Scheme or callable
        A name in :data:`FAMILIES`; a scheme, whose ``n`` is replaced where a node draws another number; or such a
        function.

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
    >>> scheme_family("spechub")(3)
    Traceback (most recent call last):
        ...
    ValueError: scheme 'spechub' draws pairs: every node of the tree needs 2 children, got 3
    """
    if isinstance(scheme, str):
        if scheme not in FAMILIES:
            raise ValueError(f"scheme must be one of {', '.join(FAMILIES)}, got {scheme!r}")
        return FAMILIES[scheme]

    def family(n: int) -> Scheme:
        if not isinstance(scheme, Scheme):
            made = scheme(n)
        elif scheme.drafts == n:
            made = scheme
        elif any(field.name == "n" for field in dataclasses.fields(scheme)):  # type: ignore[arg-type]
            made = dataclasses.replace(scheme, n=n)  # type: ignore[type-var]
        else:
            made = scheme
        if made.drafts != n:
            raise ValueError(f"scheme {made} draws {made.drafts} drafts, but a node of the tree has {n} places")
        return made

    return family
