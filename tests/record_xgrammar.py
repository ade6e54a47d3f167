"""A plugin for pytest that writes down what XGrammar answers while the tests of its own source package run.

    pytest -p tests.record_xgrammar --record-to FOLDER xgrammar-0.2.8/tests/python

Each source (a JSON Schema with options, a structural tag, EBNF, a regular expression) becomes a line, with the texts
that it was asked about or the error that refused it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xgrammar
import xgrammar.testing

from tests.recorded import canonical, key

Record = dict[str, Any]

_RECORDS: dict[str, Record] = {}
# Grammars are held, so that no two of them have one id; texts of EBNF that were made of schemas stand for these.
_GRAMMARS: dict[int, tuple[object, Record]] = {}
_MADE_OF: dict[str, Record] = {}

_PRINTING = ("print_converted_ebnf", "print_time", "debug_print")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-to", type=Path, required=True, help="the folder that gets a file of each kind of source")


def pytest_configure() -> None:
    grammar = xgrammar.Grammar
    for name, read in {
        "from_json_schema": _schema,
        "from_structural_tag": _tag,
        "from_ebnf": _ebnf,
        "from_regex": lambda regex, **_: {"regex": regex},
    }.items():
        setattr(grammar, name, staticmethod(_noting(getattr(grammar, name), read, _remember_grammar)))
    testing = xgrammar.testing
    testing._json_schema_to_ebnf = _noting(testing._json_schema_to_ebnf, _schema, _remember_text)
    testing._is_grammar_accept_string = _judging(testing._is_grammar_accept_string)


def pytest_sessionfinish(session: pytest.Session) -> None:
    files: dict[str, list[Record]] = {}
    for record in _RECORDS.values():
        if "error" in record or record["cases"]:
            files.setdefault(_file(record), []).append({"id": key(record), **record})
    folder: Path = session.config.getoption("--record-to")
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in files.items():
        lines = (json.dumps(record, ensure_ascii=True) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines))


def _file(record: Record) -> str:
    kind = next(name for name in ("structural_tag", "schema", "ebnf", "regex") if name in record)
    return {"schema": "json_schema"}.get(kind, kind) + (
        "_errors" if kind == "structural_tag" and "error" in record else ""
    )


def _noting(
    make: Callable[..., Any], read: Callable[..., Record | None], remember: Callable[[Any, Record], None]
) -> Callable[..., Any]:
    """`make`, which also notes the source that it was called with, and what came of it."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        source = read(*args, **kwargs)
        record = None if source is None else _RECORDS.setdefault(canonical(source), source | {"cases": []})
        try:
            made = make(*args, **kwargs)
        except Exception as error:
            # How deep a source may be nested is a setting of the process, which some tests change.
            if record is not None and "RecursionGuard" not in str(error):
                record["error"] = {"type": type(error).__name__, "message": str(error)}
            raise
        if record is not None:
            remember(made, record)
        return made

    return noted


def _remember_grammar(grammar: Any, record: Record) -> None:
    _GRAMMARS[id(grammar)] = grammar, record


def _remember_text(text: str, record: Record) -> None:
    _MADE_OF[text] = record


def _judging(ask: Callable[..., bool]) -> Callable[..., bool]:
    """`ask`, which also notes whether the text was accepted."""

    def judged(grammar: Any, text: str, *, require_termination: bool = True, **options: Any) -> bool:
        accepted = ask(grammar, text, require_termination=require_termination, **options)
        record = _source_of(grammar)
        case = [text, accepted]
        if record is not None and require_termination and case not in record["cases"]:
            record["cases"].append(case)
        return accepted

    return judged


def _source_of(grammar: Any) -> Record | None:
    if not isinstance(grammar, str):
        return _GRAMMARS.get(id(grammar), (None, None))[1]
    source = _ebnf(grammar)
    return None if source is None else _RECORDS.setdefault(canonical(source), source | {"cases": []})


_DEFAULTS = {
    name: parameter.default
    for made in (xgrammar.Grammar.from_json_schema, xgrammar.testing._json_schema_to_ebnf)
    for name, parameter in inspect.signature(made).parameters.items()
}


def _schema(schema: Any, **options: Any) -> Record | None:
    if isinstance(schema, type):
        schema = schema.model_json_schema()
    try:
        read = json.loads(schema) if isinstance(schema, str) else schema
    except ValueError:
        return None
    said = {name: value for name, value in options.items() if name not in _PRINTING and value != _DEFAULTS[name]}
    return {"schema": read, "options": said}


def _tag(*args: Any, **_: Any) -> Record | None:
    if len(args) != 1:  # the older way to call it
        return None
    (tag,) = args
    try:
        made = (
            tag.model_dump(mode="json")
            if hasattr(tag, "model_dump")
            else json.loads(tag)
            if isinstance(tag, str)
            else tag
        )
        return {"structural_tag": json.loads(json.dumps(made))}
    except (TypeError, ValueError):
        return None


def _ebnf(text: str, *, root_rule_name: str = "root") -> Record | None:
    if text in _MADE_OF:
        return {name: _MADE_OF[text][name] for name in ("schema", "options")}
    return {"ebnf": text} | ({} if root_rule_name == "root" else {"root_rule_name": root_rule_name})
