"""Data files in TOML that lie beside the modules: read, and looked at before anything uses them."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

#: What a kind of value is called in a message.
_WORDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def read_packaged(package: str, name: str) -> dict[str, Any]:
    """The content of a TOML file of a package.

    >>> sorted(read_packaged("mdsd_study.report", "published.toml"))
    ['papers', 'tables']
    """
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


def check_fields(
    entry: Any, where: str, needed: Mapping[str, type], optional: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """The fields of an entry, after a look at their names and at the kinds of their values.

    Parameters
    ----------
    entry : dict
        As it was read.
    where : str
        What a message calls the entry.
    needed, optional : mapping of str to type
        The fields that it must and may have, each with its kind: str, bool, int, float (which takes whole numbers
        too), list or dict.

    Raises
    ------
    ValueError
        If the entry is no table, lacks a field, has one that it must not have, or a value is of another kind.

    Examples
    --------
    >>> check_fields({"name": "a", "size": 2}, "pair 'a'", {"name": str}, {"size": float})
    {'name': 'a', 'size': 2}
    >>> check_fields({"name": "a", "sise": 2}, "pair 'a'", {"name": str}, {"size": float})
    Traceback (most recent call last):
        ...
    ValueError: pair 'a' must not have the field sise = 2; it must have name, and may have size
    """
    kinds = {**needed, **(optional or {})}
    rule = f"it must have {', '.join(needed) or 'nothing'}, and may have {', '.join(optional or ()) or 'nothing else'}"
    if not isinstance(entry, dict):
        raise ValueError(f"{where} must be a table, got {entry!r}; {rule}")
    for name in needed:
        if name not in entry:
            raise ValueError(f"{where} lacks the field {name}; {rule}")
    for name, value in entry.items():
        if name not in kinds:
            raise ValueError(f"{where} must not have the field {name} = {value!r}; {rule}")
        if type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
            raise ValueError(f"{where}: {name} must be {_WORDS[kinds[name]]}, got {value!r}")
    return entry
