"""Free text with triggers, regular expressions and EBNF side by side: compile, masks, tokens and memory.

Each kind of request comes in many versions that differ in a word, so that one can be new after others. Dovetail and
XGrammar get the same structural tag, llguidance the same language in its own grammar. How times are taken stands in
measure.py, what the columns mean in the help of bench_tools.py.

  python benchmarks/bench_formats.py                       everything, a few minutes
  python benchmarks/bench_formats.py --quick               few rounds: to see that it runs
  python benchmarks/bench_formats.py --kind regex --engines dovetail --slowest 10
                                                           only the kinds whose name begins with "regex"
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engines import STOP, Request, Tokens, load_tokens
from measure import Case, quiet
from study import Study, add_options, apply_quick, report

_STEMS = "amber birch cedar delta ember fjord grove haven indigo juniper kestrel linden maple nectar olive".split()


def word(seed: int) -> str:
    """A word of its own for each seed."""
    stem, more = _STEMS[seed % len(_STEMS)], seed // len(_STEMS)
    return stem + (_STEMS[more % len(_STEMS)] if more else "") + ("x" * (more // len(_STEMS)))


@dataclass(frozen=True)
class Kind:
    """A kind of request; WORD in its texts becomes a word of the seed's own."""

    name: str
    format: dict[str, Any]
    lark: str
    outputs: Sequence[str]

    def maker(self, tokens: Tokens) -> Callable[[int, int], Case]:
        """Requests of this kind, one per seed."""

        def make(seed: int, outputs: int) -> Case:
            own = word(seed)
            tag = {"type": "structural_tag", "format": json.loads(json.dumps(self.format).replace("WORD", own))}
            lark = "%llguidance {}\n" + self.lark.replace("WORD", own)
            texts = [self.outputs[i % len(self.outputs)].replace("WORD", own) for i in range(outputs)]
            return Case(
                f"{self.name}, version {seed}",
                Request(tag, lambda: lark),
                [[*tokens.encode(text), STOP] for text in texts],
            )

        return make


def _tag(begin: str, content: dict[str, Any], end: str) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


_PROSE = (
    "The parser reads one character at a time; if `a < b` holds, it moves on, and [brackets] or a lone < mean "
    "nothing. Größe und Gewicht stehen in der Tabelle, 詳しくは次の節で説明します。\n\n"
    "- first, the input is split\n- then each part is checked (twice!)\n\n"
)
_POINT = {
    "type": "object",
    "properties": {
        "WORD": {"type": "string"},
        "x": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["WORD", "x"],
    "additionalProperties": False,
}
_BOX = '{"WORD": "naïve \\"quote\\"", "x": -12.5e3, "tags": ["a", "bb", "c d"]}'

_TRIGGERS = Kind(
    "triggers",
    {
        "type": "triggered_tags",
        "triggers": ["<WORD", "```json\n", "[["],
        "tags": [
            _tag("<WORD>", {"type": "regex", "pattern": "[a-z]+(-[0-9]+)?"}, "</WORD>"),
            _tag("<WORD_box>", {"type": "json_schema", "json_schema": _POINT}, "</WORD_box>"),
            _tag("```json\n", {"type": "json_schema", "json_schema": {"type": "array", "items": _POINT}}, "\n```"),
            _tag("[[", {"type": "any_text"}, "]]"),
        ],
    },
    rf"""start: (tag | fence | link)* TEXT
tag: to_tag (">" /[a-z]+(-[0-9]+)?/ "</WORD>" | "_box>" %json {json.dumps(_POINT)} "</WORD_box>")
fence: to_fence %json {json.dumps({"type": "array", "items": _POINT})} "\n```"
link: to_link link_end
to_tag[lazy]: TEXT "<WORD"
to_fence[lazy]: TEXT "```json\n"
to_link[lazy]: TEXT "[["
link_end[lazy]: TEXT "]]"
TEXT: /(.|\n)*/
""",
    (
        f"{_PROSE}<WORD>item-42</WORD> and then{_PROSE}<WORD_box>{_BOX}</WORD_box>\nEnd.",
        f"See [[Überblick: the page]] for more.\n```json\n[{_BOX}, {_BOX}]\n```\n{_PROSE}",
        f"{_PROSE}{_PROSE}Nothing to mark here, except <WORD>a</WORD>.",
    ),
)
_UNTIL = Kind(
    "text, then an answer",
    {
        "type": "sequence",
        "elements": [
            _tag("", {"type": "any_text"}, "\n\nWORD: "),
            {"type": "regex", "pattern": r"(yes|no|unknown), [0-9]{1,3}(\.[0-9])? %"},
        ],
    },
    r"""start: text /(yes|no|unknown), [0-9]{1,3}(\.[0-9])? %/
text[lazy]: TEXT "\n\nWORD: "
TEXT: /(.|\n)*/
""",
    (f"{_PROSE}\n\nWORD: yes, 97.5 %", f"{_PROSE}{_PROSE}\n\nWORD: unknown, 50 %", "Hm.\n\nWORD: no, 3 %"),
)


def _regex(name: str, pattern: str, *outputs: str) -> Kind:
    return Kind(
        name, {"type": "regex", "pattern": pattern}, f"start: /{pattern.replace('/', chr(92) + '/')}/\n", outputs
    )


_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_REGEXES = (
    _regex(
        "regex, log line",
        r"WORD [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z (INFO|WARN|ERROR) [a-z_.]+: [^\n]{1,200}",
        'WORD 2024-07-01T09:30:59Z ERROR app.db.pool: connection 17 lost after 3.2 s ("timeout"), retrying — naïvely',
        "WORD 2025-12-24T18:00:00Z INFO http: GET /orders?state=open 200 12ms",
        "WORD 2025-01-31T23:59:01Z WARN disk_check: ボリュームの空き容量が少なくなっています (/var 93 %)",
    ),
    _regex(
        "regex, URL",
        r"https://WORD\.(com|org|net)(/[A-Za-z0-9._~%-]+)*(\?[a-z]+=[^&#\s]*(&[a-z]+=[^&#\s]*)*)?",
        "https://WORD.org/v2/orders/9f8e7d/items?state=open&limit=50&cursor=eyJpZCI6NDJ9",
        "https://WORD.com/a-title/2024_07/index.html",
        "https://WORD.net?q=Zürich",
    ),
    _regex(
        "regex, UUIDs",
        f"WORD: {_UUID}(, {_UUID})*",
        "WORD: 123e4567-e89b-42d3-a456-426614174000, 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
        "WORD: 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
        "WORD: 6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b, 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
    ),
)


def _ebnf(name: str, grammar: str, lark: str, *outputs: str) -> Kind:
    return Kind(name, {"type": "grammar", "grammar": grammar}, lark, outputs)


_GRAMMARS = (
    _ebnf(
        "EBNF, arithmetic",
        r"""root ::= "WORD = " expr
expr ::= term (" " [+-] " " term)*
term ::= factor ([*/] factor)*
factor ::= "(" expr ")" | name ("(" expr (", " expr)* ")")? | number
name ::= [a-z_] [a-z0-9_]*
number ::= [0-9]+ ("." [0-9]+)?
""",
        r"""start: "WORD = " expr
expr: term (/ [+-] / term)*
term: factor (/[*\/]/ factor)*
factor: "(" expr ")" | NAME ("(" expr (", " expr)* ")")? | NUMBER
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
""",
        "WORD = (alpha + 3.14159*beta)/(2 - sin(x_1 + 0.5)) - max(a, b, min(c, 7))*(1 + (2 - (3 + 4)))",
        "WORD = 1 + 2*3 - 40/x",
        "WORD = f(g(h(1.5 + y), 2), z)",
    ),
    _ebnf(
        "EBNF, JSON",
        r"""root ::= "WORD " value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt] | "\\u" [0-9a-fA-F]{4})* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)? ws
ws ::= [ \n\t]*
""",
        r"""start: "WORD " value
value: object | array | STRING WS | NUMBER WS | "true" | "false" | "null"
object: "{" WS (pair ("," WS pair)*)? "}" WS
pair: STRING WS ":" WS value
array: "[" WS (value ("," WS value)*)? "]" WS
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
WS: /[ \n\t]*/
""",
        'WORD {"name": "Zoë \\u00e9\\n", "items": [1, -2.5e10, true, null, {"deep": [[[]]]}], "text": "in 東京"}',
        'WORD [{"id": 1, "ok": false}, {"id": 2, "ok": true}]',
        'WORD {\n  "a": {\n    "b": "c"\n  }\n}',
    ),
    _ebnf(
        "EBNF, SQL",
        r"""root ::= "SELECT " columns " FROM WORD_" ident join* (" WHERE " cond)? (" LIMIT " [0-9]+)? ";"
join ::= " JOIN " ident " ON " ref " = " ref
columns ::= "*" | column (", " column)*
column ::= (("SUM" | "COUNT" | "MAX") "(" ref ")" | ref) (" AS " ident)?
ref ::= ident ("." ident)?
ident ::= [a-z] [a-z0-9_]{0,30}
cond ::= test ((" AND " | " OR ") test)*
test ::= ref (" = " | " <> " | " < " | " >= " | " LIKE ") literal | ref " IS " ("NOT ")? "NULL" | "(" cond ")"
literal ::= [0-9]+ | "'" [^'\n]* "'"
""",
        r"""start: "SELECT " columns " FROM WORD_" IDENT join* (" WHERE " cond)? (" LIMIT " INT)? ";"
join: " JOIN " IDENT " ON " ref " = " ref
columns: "*" | column (", " column)*
column: (("SUM" | "COUNT" | "MAX") "(" ref ")" | ref) (" AS " IDENT)?
ref: IDENT ("." IDENT)?
IDENT: /[a-z][a-z0-9_]{0,30}/
cond: test ((" AND " | " OR ") test)*
test: ref (" = " | " <> " | " < " | " >= " | " LIKE ") literal | ref " IS " "NOT "? "NULL" | "(" cond ")"
literal: INT | QUOTED
INT: /[0-9]+/
QUOTED: /'[^'\n]*'/
""",
        "SELECT c.name, SUM(i.total) AS owed FROM WORD_customers JOIN invoices ON c.id = i.customer_id"
        " WHERE i.state = 'open' AND (i.total >= 1000 OR c.name LIKE 'Zür%') LIMIT 20;",
        "SELECT * FROM WORD_log WHERE message LIKE '%disk full%' AND seen IS NOT NULL;",
        "SELECT COUNT(id), MAX(created_at) AS latest FROM WORD_orders;",
    ),
)  # fmt: skip

KINDS = (_TRIGGERS, _UNTIL, *_REGEXES, *_GRAMMARS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="", help="only the kinds whose name begins so")
    add_options(parser)
    options = parser.parse_args(arguments)
    apply_quick(options)
    kinds = [kind for kind in KINDS if kind.name.startswith(options.kind)]
    if not kinds:
        parser.error(f"no kind begins with {options.kind!r}; there are: {'; '.join(kind.name for kind in KINDS)}")
    tokens = load_tokens()
    with quiet():
        studies = [Study(kind.name, kind.maker(tokens), tokens, options).run() for kind in kinds]
    report(studies, options)


if __name__ == "__main__":
    main()
