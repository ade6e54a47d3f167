"""The public surface is what `__all__` says, and it is complete."""

from __future__ import annotations

import inspect
import subprocess
import sys
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


NEEDED = {"dovetail", "numpy", "pydantic", "regex", "jsonschema_rs"}
OF_PYDANTIC = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
IMPORTED = """
import sys

before = set(sys.modules)
import dovetail

new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(name for name in new - sys.stdlib_module_names if not name.startswith("_")))
"""


def test_the_package_loads_nothing_but_what_every_use_needs() -> None:
    loaded = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True).stdout
    assert {"dovetail", "numpy"} <= set(loaded.split()) <= NEEDED | OF_PYDANTIC


def test_the_version_is_the_one_of_the_package() -> None:
    from importlib.metadata import version

    assert version("dovetail") == dovetail.__version__
