"""`dovetail grammar`: what a format or grammar means, in another language or for one text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from dovetail.engine import accepts
from dovetail.errors import InputError
from dovetail.formats import Format, GrammarFormat, JsonSchemaFormat, RegexFormat, load_format
from dovetail.grammar import export, ir
from dovetail.grammar.json_schema import explain_schema
from dovetail.grammar.lower import lower

_EBNF_SUFFIXES = (".ebnf", ".gbnf")
_TARGETS = ("ebnf", "gbnf", "lark", "structural-tag")


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--from", "source", type=click.Choice(["json", "ebnf", "regex"]), help="What FILE holds; see above.")
@click.option("--to", "target", type=click.Choice(_TARGETS), help="Print the grammar in this language.")
@click.option("--accepts", "text", metavar="TEXT", help="Print whether the format matches TEXT as a whole.")
@click.option("--explain", is_flag=True, help="Print which keywords of a JSON Schema are not held exactly, and why.")
def grammar(file: Path, source: str | None, target: str | None, text: str | None, explain: bool) -> None:
    """Translate a format or grammar, or try a text on it.

    FILE holds a format as JSON (a structural tag, a bare format object, an OpenAI response_format), or EBNF where its
    name ends in .ebnf or .gbnf; --from says so where the name does not. "-" reads the standard input. Without an option
    FILE is only checked. With --explain it is a JSON Schema, or a json_schema format.

    \b
    Examples
      dovetail grammar tools.json                       is it a valid format?
      dovetail grammar tools.json --to gbnf             the grammar, as llama.cpp takes it
      dovetail grammar answer.ebnf --to lark            the grammar, as llguidance takes it
      dovetail grammar answer.ebnf --accepts yes        does it match?
      dovetail grammar schema.json --explain            is every keyword held exactly?
      echo '[0-9]+' | dovetail grammar - --from regex --accepts 42

    \b
    Exit codes
      0  the format is valid, was printed, or matches TEXT
      1  the format is not valid, or the target language cannot express it
      2  the command line is wrong
      3  the format does not match TEXT, or a keyword of the schema is not held exactly
    """
    if explain:
        _explain(_json(file))
        return
    fmt = _load(file, source)
    rule = lower(fmt)
    if target is not None:
        click.echo(_exported(fmt, rule, target), nl=False)
    if text is not None:
        matches = accepts(fmt, text)
        click.echo("accepted" if matches else "refused")
        if not matches:
            raise click.exceptions.Exit(3)
    if target is None and text is None:
        click.echo(f"valid: {fmt.type}")


def _json(file: Path) -> Any:
    try:
        return json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the file is not JSON: {error}", str(file), "give it a JSON Schema") from None


def _explain(content: Any) -> None:
    if isinstance(content, dict) and content.get("type") == "json_schema" and "json_schema" in content:
        fmt = load_format(content)
        assert isinstance(fmt, JsonSchemaFormat)
        report = explain_schema(fmt.json_schema, style=fmt.style, strict=fmt.strict, any_order=fmt.any_order)
    else:
        report = explain_schema(content)
    for finding in report.findings:
        if finding.status != "exact":
            click.echo(f"{finding.status:<10}  {finding.pointer}/{finding.keyword}  {finding.why}")
    click.echo(f"{len(report.of('exact'))} of {len(report.findings)} keywords are exact")
    if not report.is_exact:
        raise click.exceptions.Exit(3)


def _load(file: Path, source: str | None) -> Format:
    text = _text(file)
    match source or ("ebnf" if file.suffix in _EBNF_SUFFIXES else "json"):
        case "ebnf":
            return load_format(GrammarFormat(grammar=text))
        case "regex":
            return load_format(RegexFormat(pattern=text.removesuffix("\n")))
        case _:
            return load_format(text)


def _text(file: Path) -> str:
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8", f"byte {error.start}", "save it as UTF-8") from None


def _exported(fmt: Format, rule: ir.Rule, target: str) -> str:
    match target:
        case "ebnf":
            return export.ebnf(rule)
        case "lark":
            return export.lark(rule)
        case "structural-tag":
            return json.dumps(export.structural_tag(fmt), ensure_ascii=False, indent=2) + "\n"
        case _:
            return _gbnf(rule)


def _gbnf(rule: ir.Rule) -> str:
    """The grammar alone: what llama.cpp takes beside it goes to the standard error."""
    made = export.gbnf(rule)
    if made.preserved_tokens:
        click.echo(f"preserved tokens: {json.dumps(made.preserved_tokens, ensure_ascii=False)}", err=True)
    return made.grammar
