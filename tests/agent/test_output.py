"""The event stream where two threads write it: the run, and what ends the run by force."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest

from dovetail.agent.exit_reasons import Ending
from dovetail.agent.output import Output, Sink
from dovetail.agent.output.writers import Format
from dovetail.agent.types import AssistantTurn, ToolResult, ToolUse, Usage

USE = ToolUse.of("r", "read_file", {"file_path": "a.txt"})


@pytest.mark.parametrize("moment", ["assistant", "user"])
def test_a_stream_that_is_broken_off_has_one_answer_for_each_call_and_then_its_result(moment: str) -> None:
    """The end comes while the run writes the call, or the answer to it."""
    force: list[threading.Thread] = []

    def end() -> None:
        output.break_off()
        output.result(Ending("cancelled", "stop"), {})

    def listen(message: dict[str, Any]) -> None:
        if message["type"] == moment and not force:
            force.append(threading.Thread(target=end))
            force[0].start()
            force[0].join(0.05)

    output = Output("json", Sink(None), "session", "model", listener=listen)
    output.assistant(AssistantTurn((USE,)), Usage())
    output.tool_result(ToolResult("r", "read_file", "text"))
    force[0].join()
    output.tool_result(ToolResult("r", "read_file", "too late"))
    assert ["assistant", "user", "result"] == [message["type"] for message in output.messages]


@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_nothing_comes_after_a_result_that_was_told_before_the_run_began(form: Format) -> None:
    """The run was ended by force while it was put together, and its thread goes on until the process is gone."""
    stream = io.BytesIO()
    sink = Sink(stream)
    Output(form, sink, "early", "").result(Ending("cancelled", "stop"), {})
    told = stream.getvalue()
    late = Output(form, sink, "late", "model")
    late.init({"cwd": "/"})
    late.result(Ending("completed", text="too late"), {})
    assert told == stream.getvalue()
    assert [] == [line for line in told.splitlines() if json.loads(line)["type"] != "result"]
