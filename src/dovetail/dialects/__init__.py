"""Dialects: how model families talk, as data.

Dialect --format(request)--> StructuralTag
Dialect --render(message)--> the text of an assistant turn
"""

from dovetail.dialects.dialect import Dialect
from dovetail.dialects.registry import get, names, register

__all__ = ["Dialect", "get", "names", "register"]
