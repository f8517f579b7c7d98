"""Was a number found again? Results against their reference, within the tolerances that stand beside the values."""

from typing import Any

from mdsd_study.report.results import Results, Value


def compare_results(found: Results, reference: Results) -> list[str]:
    """What differs between `found` and `reference`, one line each; an empty list if all was found again.

    The tolerances are those of the reference. Timings are not compared. Different profiles or parameters, and values
    that only one of the two has, are differences.

    Parameters
    ----------
    found, reference : Results
        As read by :func:`~mdsd_study.report.results.read_results`.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> old = Results("x", "ci", {}, {"rate": exact(0.75, atol=1e-4)})
    >>> compare_results(Results("x", "ci", {}, {"rate": exact(0.75005, atol=1e-4)}), old)
    []
    >>> compare_results(Results("x", "ci", {}, {"rate": exact(0.76, atol=1e-4)}), old)
    ['x (ci): rate is 0.76, the reference 0.75, the tolerance 0.0001']
    """
    where = f"{reference.name} ({reference.profile})"
    if found.name != reference.name or found.profile != reference.profile:
        return [f"{where} was compared with {found.name} ({found.profile})"]
    differences = [
        f"{where}: ran with the parameter {name} = {found.parameters.get(name, 'absent')!r}, "
        f"the reference with {reference.parameters.get(name, 'absent')!r}"
        for name in sorted(found.parameters.keys() | reference.parameters.keys())
        if found.parameters.get(name, "absent") != reference.parameters.get(name, "absent")
    ]
    if differences:
        return differences
    for key in sorted(found.values.keys() | reference.values.keys()):
        if key not in found.values:
            differences.append(f"{where}: {key} is in the reference but not in the results")
        elif key not in reference.values:
            differences.append(f"{where}: {key} is in the results but not in the reference; run `make reference`")
        else:
            differences += [f"{where}: {text}" for text in _differences(key, found.values[key], reference.values[key])]
    return differences


def _differences(key: str, found: Value, reference: Value) -> list[str]:
    if found.kind != reference.kind:
        return [f"{key} is now {found.kind}, the reference {reference.kind}"]
    if reference.kind == "timing":
        return []
    tolerance = reference.tolerance
    if not tolerance:
        return [f"{key} has no tolerance in the reference"]
    if tolerance.get("overlap"):
        one, other = found.interval, reference.interval
        return [] if _overlap(one, other) else [f"{key} has the interval {one}, the reference {other}: no overlap"]
    texts = _unequal(key, found.value, reference.value, tolerance)
    if reference.interval is not None:
        ends = found.interval or (None, None)
        for name, one, other in zip(("lower end", "upper end"), ends, reference.interval, strict=True):
            texts += _unequal(f"{name} of {key}", one, other, tolerance)
    return texts


def _overlap(found: Any, reference: Any) -> bool:
    if isinstance(reference[0], list):
        rows = [list(zip(*pair, strict=False)) for pair in (found, reference)]
        return len(rows[0]) == len(rows[1]) and all(_overlap(a, b) for a, b in zip(*rows, strict=True))
    return bool(found[0] <= reference[1] and reference[0] <= found[1])


def _number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _unequal(key: str, found: Any, reference: Any, tolerance: dict[str, float]) -> list[str]:
    if isinstance(reference, list):
        if not isinstance(found, list) or len(found) != len(reference):
            return [f"{key} is {found}, the reference {reference}: not the same shape"]
        pairs = enumerate(zip(found, reference, strict=True))
        return [text for i, pair in pairs for text in _unequal(f"{key}[{i}]", *pair, tolerance)]
    if _number(found) and _number(reference):
        allowed = tolerance["atol"] + tolerance["rtol"] * abs(reference)
        if abs(found - reference) <= allowed:
            return []
        return [f"{key} is {found!r}, the reference {reference!r}, the tolerance {allowed:.3g}"]
    if type(found) is type(reference) and found == reference:
        return []
    return [f"{key} is {found!r}, the reference {reference!r}"]
