"""Dialects: how model families talk, as data, and the formats that follow from it."""

from dovetail.dialects.dialect import Dialect
from dovetail.dialects.families import FAMILIES
from dovetail.errors import InputError

__all__ = ["Dialect", "get", "names"]

_known = {dialect.name: dialect for dialect in FAMILIES}


def names() -> list[str]:
    """The names of the families, in alphabetical order."""
    return sorted(_known)


def get(name: str) -> Dialect:
    """The family of this name."""
    if name not in _known:
        raise InputError(f"there is no dialect {name!r}", "", f"use one of {', '.join(names())}")
    return _known[name]
