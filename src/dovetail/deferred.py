"""Names of a package that are loaded when the first of them is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def deferred(package: str, *modules: str) -> Callable[[str], object]:
    """A `__getattr__` of a package: its modules, and what these of them hold.

    A headless run would wait half a second for the compilers of grammars that it does not need, and a signal in that
    time would find nobody to answer it.
    """

    def find(name: str) -> object:
        if not name.startswith("__") and (module := _module(package, name)) is not None:
            return module
        for each in modules if name == "__all__" or not name.startswith("__") else ():
            holder = importlib.import_module(f"{package}.{each}")
            if hasattr(holder, name):
                setattr(sys.modules[package], name, getattr(holder, name))
                return getattr(holder, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def _module(package: str, name: str) -> object | None:
    path = f"{package}.{name}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None
