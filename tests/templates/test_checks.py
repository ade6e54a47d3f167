"""A check passes where a template and its dialect agree, and fails where they do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.dialects import Content, Dialect
from dovetail.templates.analysis import analyze_template
from dovetail.templates.analysis.verify import Rendered
from dovetail.templates.checks import FEATURES, Report, checking, markdown
from dovetail.templates.checks.laws import streams
from tests.recorded import templates

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "chat_template.jinja"
SOURCE = EXAMPLE.read_text()
SUPPORT = Path(__file__).parent.parent.parent / "docs" / "template-support.md"
README = Path(__file__).parent.parent.parent / "README.md"

# Templates that break what they write, with the features that this breaks.
DEFECTS = {
    # It closes the section of calls only behind the second call, and ends the turn there: one call is never closed.
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "call parallel nested unicode whitespace constraint",
    # It writes strings between quotes without escapes, so a backslash means something else to a reader of Python.
    "LFM2.5-8B-A1B": "unicode",
    # It leaves null out of nested arguments.
    "MiniMax-M3": "nested",
    # It makes two turns of content and calls.
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "call",
    # It writes content beside a call as reasoning.
    "openai-gpt-oss-120b": "call",
}


@pytest.mark.slow
def test_every_template_keeps_the_laws_for_what_it_supports(conformance: Path) -> None:
    paths = templates(conformance / "llama_cpp" / "templates")
    rows = [(path.stem, dt.check(path)) for path in paths]
    failed = {name: " ".join(check.feature for check in report.failures) for name, report in rows if not report.passed}
    assert DEFECTS == failed
    assert markdown(rows) in SUPPORT.read_text(), "print the table anew: dovetail check FOLDER --markdown"


def test_the_readme_counts_what_the_page_of_templates_shows() -> None:
    shown = [row for row in SUPPORT.read_text().splitlines() if re.match(r"\| (?!template )", row)]
    broken = {row.split("|")[1].strip() for row in shown if "✗" in row}
    assert broken == DEFECTS.keys()
    assert f"| {len(shown) - len(broken)} of {len(shown)} | published chat templates hold all" in README.read_text()


def broken(change: Callable[[Dialect], Dialect], monkeypatch: pytest.MonkeyPatch, source: str = SOURCE) -> Report:
    """The report where the analysis had found something else."""

    def wrong(*arguments: Any) -> Any:
        found = analyze_template(*arguments)
        return replace(found, dialect=change(found.dialect))

    monkeypatch.setattr(checking, "analyze_template", wrong)
    return dt.check(source)


def with_calls(**changes: Any) -> Callable[[Dialect], Dialect]:
    return lambda dialect: replace(dialect, calls=(replace(dialect.calls[0], **changes),))


def with_reasoning(**changes: Any) -> Callable[[Dialect], Dialect]:
    def change(dialect: Dialect) -> Dialect:
        assert dialect.reasoning is not None
        return replace(dialect, reasoning=replace(dialect.reasoning, **changes))

    return change


WRONG = [
    # what is wrong with the dialect, a feature that must fail for it
    (with_reasoning(end="</pondered>"), "reasoning"),
    (with_reasoning(after="</hm>"), "constraint"),
    (lambda dialect: replace(dialect, content=Content(("<text>",), ("</text>",))), "content"),
    (with_calls(call_end="</acted>"), "call"),
    (with_calls(call_begin='<do to="', trigger='<do to="'), "call"),
    (with_calls(begin="<acts>", end="</acts>"), "parallel"),
    (with_calls(trigger="<act>"), "constraint"),
]


@pytest.mark.parametrize(("change", "feature"), WRONG)
def test_a_dialect_that_does_not_fit_its_template_fails(
    change: Callable[[Dialect], Dialect], feature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = broken(change, monkeypatch)
    assert "failed" == report[feature].status, report
    assert not report.passed
    assert report[feature].fix
    assert report[feature].detail


def test_the_example_has_everything_but_ids() -> None:
    report = dt.check(SOURCE)
    assert report.passed
    assert ["ids"] == [check.feature for check in report.checks if check.status == "absent"]
    assert FEATURES == tuple(check.feature for check in report.checks)


def test_reasoning_that_is_left_out_of_history_is_tried_as_the_model_writes_it() -> None:
    source = SOURCE.replace("message.reasoning_content %}", "false %}").replace(
        "{{- message.content }}", "{{- message.content.split('</ponder>')[-1] }}"
    )
    report = dt.check(source.replace("{{- '<|turn|>assistant\n' }}", "{{- '<|turn|>assistant\n<ponder>' }}"))
    assert "passed" == report["reasoning"].status
    assert "out of history" in report["reasoning"].detail


def test_what_a_template_cannot_tell_fails_and_says_so() -> None:
    report = dt.check(SOURCE.replace("arguments | tojson", "arguments | tojson | replace('null', '\"\"')"))
    assert "failed" == report["nested"].status
    assert "cannot tell" in report["nested"].detail


def test_reasoning_that_is_written_and_not_found_fails() -> None:
    plain = SOURCE.replace("message.reasoning_content %}", "false %}")
    assert "absent" == dt.check(plain)["reasoning"].status
    report = dt.check(
        plain.replace("{{- message.content }}", "{{- message.content ~ (message.reasoning_content or '') }}")
    )
    assert "failed" == report["reasoning"].status
    assert "no layout" in report["reasoning"].detail


def test_an_instruction_before_the_content_of_every_role_fails() -> None:
    report = dt.check(
        "{% for m in messages %}{{ '<|' ~ m.role ~ '|>Put your answer into a box: ' ~ m.content ~ '<|end|>' }}"
        "{% endfor %}{{ '<|assistant|>' if add_generation_prompt }}"
    )
    assert "failed" == report["content"].status
    assert "no model writes" in report["content"].detail


def test_calls_that_are_joined_in_no_regular_way_fail() -> None:
    report = dt.check(SOURCE.replace("'</act>' }}", "('</act>' if loop.first else '</end>') }}"))
    assert "failed" == report["parallel"].status
    assert "same markers" in report["parallel"].fix


def test_a_reader_that_loses_bytes_or_depends_on_cuts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    dialect = analyze_template(SOURCE).dialect
    turn = Rendered(dialect.turn.start, "<ponder>hm</ponder>\nHello", "auto")
    assert "" == streams(dialect, None, turn)
    feed = dt.StreamParser.feed
    monkeypatch.setattr(dt.StreamParser, "feed", lambda self, chunk: feed(self, chunk)[:-1])
    assert "cover" in streams(dialect, None, turn)
    monkeypatch.setattr(dt.StreamParser, "feed", lambda self, chunk: feed(self, chunk.replace(b"ll", b"LL")))
    assert "chunks of 1 bytes" in streams(dialect, None, turn)


def test_a_random_speaker_finds_what_the_reader_remarks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dialect.format
    monkeypatch.setattr(
        Dialect, "format", lambda self, tools=None, *args, **options: made(self, [TOOL], *args, **options)
    )
    report = dt.check(SOURCE)
    assert "failed" == report["constraint"].status


TOOL = {"type": "function", "function": {"name": "unknown_to_the_reader", "parameters": {"type": "object"}}}


def test_a_report_reads_as_a_table() -> None:
    report = dt.check(SOURCE)
    assert "reasoning   yes" in str(report)
    assert "ids         -    calls with other ids are rendered alike" in str(report)
    table = markdown([("example", report)]).splitlines()
    assert 3 == len(table)
    assert f"| example | {' | '.join('' if name == 'ids' else '✓' for name in FEATURES)} |" == table[2]


def test_a_hostile_template_is_not_rendered_again_and_again() -> None:
    with pytest.raises(dt.LimitError):
        dt.check("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
    with pytest.raises(dt.TemplateError, match="no turn of an assistant"):
        dt.check("{{ messages[0].content }}")
