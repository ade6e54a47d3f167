"""Warnings that name the line of the caller, however deep in the package the cause is found."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn(text: str, category: type[Warning]) -> None:
    """Warn with the file and line of the innermost call from outside the package."""
    level = 2
    # The level is counted by hand because warnings.warn takes skip_file_prefixes only from Python 3.12 on.
    while _is_ours(level):
        level += 1
    warnings.warn(text, category, stacklevel=level)


def _is_ours(level: int) -> bool:
    """Whether the frame `level` steps above warn(), which is level 1, belongs to this package."""
    try:
        frame = sys._getframe(level)
    except ValueError:  # the package was called from no Python code
        return False
    return frame.f_code.co_filename.startswith(_PACKAGE)
