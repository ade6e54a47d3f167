"""Each correction applies to its feature, says why, and is told among the findings."""

from __future__ import annotations

import pytest

from dovetail.templates.analysis import Analysis, analyze_template
from dovetail.templates.analysis.corrections import CORRECTIONS

TURNS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
CALLS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}<|tool_calls_section_begin|>"
    "{% for c in m.tool_calls %}<|call|>{{ c.function.name }}<|args|>{{ c.function.arguments | tojson }}<|end_call|>"
    "{% endfor %}<|tool_calls_section_end|>{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ROWS = {
    "thoughts between tags": "Write your thoughts between <ponder></ponder> and your response between <reply></reply>."
    + TURNS,
    "a marker followed by a JSON list": "Answer with <|use|> followed by a JSON list of calls." + TURNS,
    "an example of a call": 'Call a tool so: <do>\n{"name": <its name>, "arguments": <its arguments>}\n</do>' + TURNS,
    "tools between <|tool|> and <|/tool|>": "{% if tools %}<|tool|>{{ tools | tojson }}<|/tool|>{% endif %}" + TURNS,
    "a tool list between <|tool_list_start|> and <|tool_list_end|>": "Tools: <|tool_list_start|>[]<|tool_list_end|>"
    + TURNS,
    "sections of calls that begin with <|tool_calls_section_begin|>": CALLS,
}


def corrections(analysis: Analysis) -> dict[str, str]:
    return {row.value: row.correction for row in analysis.findings if row.what == "correction"}


@pytest.mark.parametrize("row", CORRECTIONS, ids=lambda row: row.name)
def test_a_correction_applies_to_its_feature_and_says_why(row: object) -> None:
    name, reason = row.name, row.reason  # type: ignore[attr-defined]
    assert corrections(analyze_template(ROWS[name])) == {name: reason}
    assert len(reason) > 40


def test_a_template_without_the_features_is_not_corrected() -> None:
    assert corrections(analyze_template(TURNS)) == {}


def test_tags_that_a_template_talks_about_are_read() -> None:
    dialect = analyze_template(ROWS["thoughts between tags"]).dialect
    message = dialect.parse("<ponder>Hm.</ponder><reply>Yes.</reply>", prompt="<|assistant|>")
    assert ("Hm.", "Yes.", ()) == (message.reasoning, message.content, message.diagnostics)


def test_calls_that_a_template_talks_about_are_read() -> None:
    tool_list = "a tool list between <|tool_list_start|> and <|tool_list_end|>"
    for name, output in (
        ("a marker followed by a JSON list", '<|use|>[{"name": "f", "arguments": {"a": 1}}]'),
        (tool_list, "<|tool_call_start|>[f(a=1)]<|tool_call_end|>"),
        ("an example of a call", '<do>\n{"name": "f", "arguments": {"a": 1}}\n</do>'),
        ("tools between <|tool|> and <|/tool|>", '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]<|/tool_call|>'),
    ):
        message = analyze_template(ROWS[name]).dialect.parse(output, prompt="<|assistant|>")
        assert [("f", {"a": 1})] == [(call.name, call.value) for call in message.tool_calls]
        assert () == message.diagnostics
