"""Regular expressions: the regular subset of ECMA-262 and Python's `re`.

`parse` reads a pattern that must match a whole chunk of output, `search` one that must be found somewhere in a text,
as JSON Schema's `pattern` demands. Both give nodes without calls. `\\d`, `\\w`, `\\s`, `$` and `.` mean what they
mean in ECMA-262; case is compared by simple case folding. Lookarounds and word boundaries are resolved exactly.
"""

from dovetail.grammar.regex.regular import complement, intersect, restrict, shortest
from dovetail.grammar.regex.resolve import parse, search

__all__ = ["complement", "intersect", "parse", "restrict", "search", "shortest"]
