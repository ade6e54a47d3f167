"""Dialects: how model families talk, as data.

Dialect --format(request)--> StructuralTag
Dialect --render(message)--> the text of an assistant turn
"""

from dovetail.dialects.dialect import Dialect, Proof, UnprovenWarning
from dovetail.dialects.registry import get, names, register
from dovetail.layouts.styles import GEMMA, PYTHON, Literals
from dovetail.parsing.layouts import (
    ARGUMENTS,
    ID,
    NAME,
    Content,
    JsonCall,
    KeyedCall,
    Quoted,
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
    "Proof",
    "Quoted",
    "Reasoning",
    "TaggedCall",
    "ToolCalls",
    "Turn",
    "UnprovenWarning",
    "get",
    "names",
    "register",
]
