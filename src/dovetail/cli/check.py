"""`dovetail check`: whether chat templates and the dialects derived from them agree."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from dovetail.errors import DovetailError
from dovetail.templates.checks import FEATURES, Check, Report, check_template, markdown
from dovetail.templates.sources import find_template

_MARKS = {"passed": ("yes", "green"), "failed": ("NO", "bold red"), "absent": ("-", "bright_black")}
_OWN_FILES = ("tokenizer_config.json", "chat_template.jinja", "chat_template.json")


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a table in Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def check(files: tuple[Path, ...], as_markdown: bool, as_json: bool) -> None:
    """Prove that chat templates and the dialects derived from them agree.

    FILE is a template, the folder of a tokenizer, a tokenizer_config.json, a GGUF model, or a folder of .jinja files.
    Each template writes probe messages: with reasoning, with one call and several, with nested, Unicode and multi-line
    arguments, with ids. Each must be read back as it was, whole, in chunks and damaged, and must be allowed by the
    format that would constrain the model; and what a random speaker says under that format must be read without a
    remark. "-" marks what a template does not have.

    \b
    Examples
      dovetail check chat_template.jinja
      dovetail check ./model
      dovetail check templates/
      dovetail check templates/ --markdown > table.md

    \b
    Exit codes
      0  everything that the templates support holds
      1  a file holds no template, or a template cannot be analyzed
      2  the command line is wrong
      3  something does not hold
    """
    console = Console(highlight=False, soft_wrap=True)
    paths = [path for file in files for path in _templates(file)]
    plain = not (as_markdown or as_json)
    width = max(map(len, map(_name, paths)), default=0)
    if plain and len(paths) > 1:
        console.print(Text(f"{'':<{width}}  " + "  ".join(FEATURES), "bold"))
    reports: list[tuple[str, Report]] = []
    unread = 0
    for path in paths:
        report = _report(path)
        if report is None:
            unread += 1
            continue
        reports.append((_name(path), report))
        if as_json:
            click.echo(json.dumps(_as_json(path, report), ensure_ascii=False))
        elif plain and len(paths) > 1:
            console.print(_row(_name(path), report, width))
        elif plain:
            _print_report(console, report)
    if as_markdown:
        click.echo(markdown(reports))
    if plain and len(paths) > 1:
        _print_failures(console, reports)
    if unread:
        raise click.exceptions.Exit(1)
    if not all(report.passed for _, report in reports):
        raise click.exceptions.Exit(3)


def _templates(file: Path) -> list[Path]:
    """The file itself, or the templates in a folder that is not a tokenizer's."""
    if not file.is_dir() or any((file / name).exists() for name in _OWN_FILES):
        return [file]
    return sorted(file.glob("*.jinja")) or [file]


def _name(path: Path) -> str:
    return path.stem if path.suffix == ".jinja" else path.name


def _report(path: Path) -> Report | None:
    try:
        source = find_template(path)
        return check_template(source.text, source.bos_token, source.eos_token)
    except DovetailError as error:
        click.echo(f"{path}\n{type(error).__name__}: {error}", err=True)
        return None


def _row(name: str, report: Report, width: int) -> Text:
    line = Text(f"{name:<{width}}  ")
    for feature in FEATURES:
        mark, style = _MARKS[report[feature].status]
        line += Text(f"{mark:<{len(feature)}}  ", style)
    line.rstrip()
    return line


def _print_report(console: Console, report: Report) -> None:
    for check in report.checks:
        mark, style = _MARKS[check.status]
        line = Text(f"{check.feature:<11} ") + Text(f"{mark:<4} ", style) + Text(check.detail)
        line.rstrip()
        console.print(line)
        _print_fix(console, check)
    verdict = "everything holds" if report.passed else f"{len(report.failures)} of {len(FEATURES)} do not hold"
    console.print(Text(f"\n{verdict}", "green" if report.passed else "bold red"))


def _print_failures(console: Console, reports: list[tuple[str, Report]]) -> None:
    for name, report in reports:
        for failure in report.failures:
            console.print(Text(f"\n{name}, {failure.feature}: ", "bold") + Text(failure.detail))
            _print_fix(console, failure)
    passed = sum(report.passed for _, report in reports)
    console.print(Text(f"\n{passed} of {len(reports)} templates hold everything that they support"))


def _print_fix(console: Console, failure: Check) -> None:
    if failure.status == "failed":
        console.print(Text("  in   ", "bright_black") + Text(repr(failure.rendered)))
        console.print(Text("  fix  ", "bright_black") + Text(failure.fix))


def _as_json(path: Path, report: Report) -> dict[str, object]:
    return {
        "template": str(path),
        "passed": report.passed,
        "checks": [dataclasses.asdict(row) for row in report.checks],
    }
