"""Grammars written for other engines: GBNF for llama.cpp, EBNF and structural tags for xgrammar, Lark for llguidance.

Each export accepts exactly the texts that the grammar accepts, or is an `ExportError` that says what cannot be said.
"""

from dovetail.grammar.export.languages import Gbnf, ebnf, gbnf, lark
from dovetail.grammar.export.tags import structural_tag

__all__ = ["Gbnf", "ebnf", "gbnf", "lark", "structural_tag"]
