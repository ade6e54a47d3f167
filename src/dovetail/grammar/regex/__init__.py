"""Regular expressions: the regular subset of ECMA-262 and Python's `re`.

`parse` reads a pattern that must match a whole chunk of output, `search` one that must be found somewhere in a text,
as JSON Schema's `pattern` demands, and `language` several of those. `\\d`, `\\w`, `\\s`, `$` and `.` mean what they
mean in ECMA-262; case is compared by simple case folding. Lookarounds and word boundaries are resolved exactly; the
nodes then call rules, which call others at their end only.
"""

from dovetail.grammar.regex.automaton import Automaton
from dovetail.grammar.regex.regular import (
    Spelling,
    closed,
    complement,
    intersect,
    is_empty,
    mapped,
    restrict,
    shortest,
    without,
)
from dovetail.grammar.regex.resolve import language, measured, parse, search
from dovetail.grammar.regex.rules import to_node

__all__ = [
    "Automaton",
    "Spelling",
    "closed",
    "complement",
    "intersect",
    "is_empty",
    "language",
    "mapped",
    "measured",
    "parse",
    "restrict",
    "search",
    "shortest",
    "to_node",
    "without",
]
