"""Regular expressions: the regular subset of ECMA-262 and Python's `re`.

`parse` reads a pattern that must match a whole chunk of output, `search` one that must be found somewhere in a text,
as JSON Schema's `pattern` demands, and `language` several of those. `\\d`, `\\w`, `\\s`, `$` and `.` mean what they
mean in ECMA-262; case is compared by simple case folding. Lookarounds and word boundaries are resolved exactly; the
nodes then call rules, which call others at their end only.
"""

from dovetail.grammar.regex.automaton import chars
from dovetail.grammar.regex.charset import limited
from dovetail.grammar.regex.languages import (
    admits,
    count,
    grows,
    intersect,
    is_empty,
    language,
    measured,
    parse,
    search,
    shortest,
    without,
)
from dovetail.grammar.regex.spelling import Spelling, closed, mapped, restrict

__all__ = [
    "Spelling",
    "admits",
    "chars",
    "closed",
    "count",
    "grows",
    "intersect",
    "is_empty",
    "language",
    "limited",
    "mapped",
    "measured",
    "parse",
    "restrict",
    "search",
    "shortest",
    "without",
]
