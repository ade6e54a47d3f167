"""The public surface is what `__all__` says, and it is complete."""

from __future__ import annotations

import inspect
from types import ModuleType

import dovetail
from dovetail import errors


def test_all_is_sorted_and_lists_every_public_name() -> None:
    public = [
        name
        for name, value in vars(dovetail).items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in dovetail.__all__)
    ]
    assert dovetail.__all__ == sorted(public)


def test_every_error_is_public_and_documented() -> None:
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert classes <= set(dovetail.__all__)


def test_every_public_class_and_function_says_what_it_is_for() -> None:
    assert [] == [name for name in dovetail.__all__ if not inspect.getdoc(getattr(dovetail, name))]


def test_the_version_is_the_one_of_the_package() -> None:
    from importlib.metadata import version

    assert version("dovetail") == dovetail.__version__
