"""`dovetail inspect`: what a chat template says about how its model talks, and which renders show it."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from os.path import commonprefix
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from dovetail.cli.inspect_page import page, summary
from dovetail.cli.shapes import visible
from dovetail.errors import ExportError
from dovetail.grammar.export import Gbnf
from dovetail.templates.analysis import Analysis, Evidence, Finding, analyze_template
from dovetail.templates.picture import Region, call_grammar, regions
from dovetail.templates.sources import TemplateSource, find_template

_STYLES = {
    "prompt": "bright_black",
    "end": "bright_black",
    "markup": "yellow",
    "reasoning": "magenta",
    "content": "default",
    "arguments": "cyan",
}
_CONTEXT = 36  # characters shown before and behind what was found


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--evidence", is_flag=True, help="Print the renders that show each finding.")
@click.option("--gbnf", "grammar", is_flag=True, help="Print the grammar of a call too, as llama.cpp takes it.")
@click.option("--html", "drawn", metavar="PAGE", type=click.Path(path_type=Path), help="Write it all as a web page.")
def inspect(file: Path, as_json: bool, evidence: bool, grammar: bool, drawn: Path | None) -> None:
    """Show how a chat template makes its model talk.

    FILE is a template, the folder of a tokenizer, a tokenizer_config.json, or a GGUF model. The template is rendered in
    variants that differ in one thing, and what differs in the renders is what is shown here: the markers of reasoning,
    content and calls, what the template can carry, and one turn cut into its regions.

    \b
    Examples
      dovetail inspect chat_template.jinja
      dovetail inspect ./model --evidence
      dovetail inspect model.gguf --gbnf
      dovetail inspect chat_template.jinja --json
      dovetail inspect chat_template.jinja --html page.html

    \b
    Exit codes
      0  the template was analyzed
      1  the file holds no template, or the template cannot be analyzed
      2  the command line is wrong
    """
    source = find_template(file)
    analysis = analyze_template(source.text, source.bos_token, source.eos_token)
    if as_json:
        click.echo(json.dumps(_everything(source, analysis), ensure_ascii=False, indent=2))
        return
    if drawn:
        drawn.write_text(page(source, analysis), encoding="utf-8")
        return
    console = Console(highlight=False, soft_wrap=True)
    _print_summary(console, analysis)
    _print_turn(console, regions(source, analysis))
    _print_findings(console, analysis.findings, evidence)
    for note in analysis.notes:
        console.print(Text("note  ", "yellow") + Text(visible(note)))
    _print_grammar(console, call_grammar(analysis.dialect), grammar)


def _print_summary(console: Console, analysis: Analysis) -> None:
    for name, value in summary(analysis):
        console.print(Text(f"{name:<10} ", "bold") + Text(value))
    console.print()


def _print_turn(console: Console, regions: tuple[Region, ...]) -> None:
    if not regions:
        return
    console.print(Text("One turn", "bold"))
    for region in regions:
        console.print(Text(f"  {region.name:<10} ", "bright_black") + Text(visible(region.text), _STYLES[region.name]))
    console.print()


def _print_findings(console: Console, findings: tuple[Finding, ...], evidence: bool) -> None:
    console.print(Text("Found", "bold"))
    for finding in findings:
        why = finding.correction or f"varied: {finding.evidence.varied}"
        line = Text(f"  {finding.what:<18} ") + Text(visible(finding.value), "yellow")
        console.print(line + Text(f"   {why}", "bright_black"))
        if evidence and finding.evidence.right:
            _print_evidence(console, finding.evidence)
    console.print()


def _print_evidence(console: Console, evidence: Evidence) -> None:
    if evidence.left:
        same = len(commonprefix([evidence.left, evidence.right]))
        shown = evidence.left[max(0, same - _CONTEXT) : same + _CONTEXT]
        console.print(Text(f"      without  {visible(shown)}", "bright_black"))
    start, end = evidence.spans[0] if evidence.spans else (0, 0)
    before, varied = evidence.right[max(0, start - _CONTEXT) : start], evidence.right[start:end]
    line = Text(f"      with     {visible(before)}", "bright_black") + Text(visible(varied), "reverse")
    console.print(line + Text(visible(evidence.right[end : end + _CONTEXT]), "bright_black"))


def _print_grammar(console: Console, made: Gbnf, whole: bool) -> None:
    for name, values in (("Triggers", made.triggers), ("Preserved tokens", made.preserved_tokens)):
        if values:
            console.print(Text(f"{name}  ", "bold") + Text("  ".join(map(visible, values)), "yellow"))
    if whole:
        console.print(Text("\nGBNF", "bold"))
        console.print(Text(made.grammar.rstrip("\n"), "default"))


def _everything(source: TemplateSource, analysis: Analysis) -> dict[str, Any]:
    return {
        "origin": source.origin,
        **_as_json(analysis),
        "tools_in_prompt": analysis.tools_in_prompt,
        "turn": _as_json(regions(source, analysis)),
        "grammar": _as_json(_grammar(analysis)),
    }


def _grammar(analysis: Analysis) -> Gbnf | None:
    try:
        return call_grammar(analysis.dialect)
    except ExportError:
        return None


def _as_json(value: Any) -> Any:
    """Dataclasses as objects, members of enumerations as their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value
