"""Grammars as text: xgrammar's EBNF and llama.cpp's GBNF, read by one parser."""

from dovetail.grammar.ebnf.parser import parse

__all__ = ["parse"]
