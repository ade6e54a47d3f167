"""Dialects: how model families talk, as data.

Dialect --format(request)--> StructuralTag
Dialect --render(message)--> the text of an assistant turn
"""

from dovetail.dialects.dialect import Dialect
from dovetail.dialects.registry import get, names, register
from dovetail.layouts.styles import GEMMA, PYTHON, Literals
from dovetail.parsing.layouts import (
    ARGUMENTS,
    ID,
    NAME,
    Content,
    JsonCall,
    KeyedCall,
    Reasoning,
    TaggedCall,
    ToolCalls,
    Turn,
)

__all__ = [
    "ARGUMENTS",
    "GEMMA",
    "ID",
    "NAME",
    "PYTHON",
    "Content",
    "Dialect",
    "JsonCall",
    "KeyedCall",
    "Literals",
    "Reasoning",
    "TaggedCall",
    "ToolCalls",
    "Turn",
    "get",
    "names",
    "register",
]
