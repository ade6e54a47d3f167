"""Law 7 (agreement): any message that a template can say is read back, whichever template says it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.messages import Message
from dovetail.templates.analysis import Analysis, analyze_template
from dovetail.templates.checks.features import tools_of, with_ids
from dovetail.templates.checks.laws import accepted, read_back, streams
from dovetail.templates.checks.turns import Turns
from tests.recorded import templates
from tests.turns import MESSAGES

SAYING = MESSAGES.filter(lambda message: bool(message.content or message.tool_calls))
DEFECTIVE = ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B",)  # it never closes the calls that it opens


@lru_cache
def analyzed(path: Path) -> tuple[Analysis, Turns]:
    source = path.read_text()
    analysis = analyze_template(source)
    return analysis, Turns(source, analysis, "", "")


@settings(max_examples=60)
@given(data=st.data(), message=SAYING)
def test_a_message_that_a_template_says_is_read_back(conformance: Path, data: st.DataObject, message: Message) -> None:
    paths = templates(conformance / "llama_cpp" / "templates")
    path = data.draw(st.sampled_from([path for path in paths if path.stem not in DEFECTIVE]))
    analysis, turns = analyzed(path)
    dialect, message = analysis.dialect, with_ids(message, analysis.dialect)
    try:
        dialect.render(message)
    except dt.DialectError:
        assume(False)
    tools = tools_of(message) or None
    turn = turns.of(message, tools)
    assume(turn is not None)
    assert turn is not None
    problem = read_back(dialect, tools, turn, message)
    if problem:
        # A template that writes two messages alike leaves nothing by which to tell them apart.
        other = turns.of(dialect.parse(turn.output, tools, turn.prompt), tools)
        assert other is not None, problem
        assert turn.output == other.output, problem
    else:
        assert "" == accepted(dialect, tools, turn)
    assert "" == streams(dialect, tools, turn)
