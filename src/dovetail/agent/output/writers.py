"""Where messages go: nothing but the answer for text, one array for json, a line each for stream-json."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Literal

from dovetail.agent.exit_reasons import CUT_OFF, Ending
from dovetail.agent.output.envelopes import Envelopes, Wire, compact, line, usage_of
from dovetail.agent.types import AssistantTurn, ToolResult, ToolUse, Usage

Format = Literal["text", "json", "stream-json"]

# How long a message that is just being written is waited for when the stream is broken off.
_PATIENCE_S = 0.2


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """The text with control characters made visible: what a model or a service says must not steer a terminal."""
    return text.translate(_CONTROLS)


class Sink:
    """Standard output, or None for nowhere; a reader that has gone away silences it and is no error.

    `problem` says what else kept something from being written, such as a full disk.
    """

    def __init__(self, file: BinaryIO | None, problem: str = "") -> None:
        self._file = file
        self._is_terminal = file is not None and file.isatty()
        self._turn = threading.Lock()
        self.problem = problem

    def write(self, text: str) -> None:
        """Write a line and push it out at once: readers wait for it."""
        with self._turn:
            self._write(text)

    def end(self, *lines: str) -> None:
        """Write the last lines; whatever another thread would write after them is dropped."""
        is_ours = self._turn.acquire(timeout=_PATIENCE_S)  # not if nobody reads what is just being written
        for text in lines:
            self._write(text)
        self._file = None
        if is_ours:
            self._turn.release()

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        try:
            shown = harmless(text) if self._is_terminal else text
            self._file.write(shown.encode("utf-8", "replace") + b"\n")
            self._file.flush()
        except (BrokenPipeError, ConnectionResetError, ValueError):
            self._silence()
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._silence()

    def _silence(self) -> None:
        """Write nothing any more: what the buffer still holds would fail again when the process ends."""
        file, self._file = self._file, None
        try:
            assert file is not None
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, file.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            pass


class Output:
    """The event stream of one run in one format; exactly one result closes it."""

    def __init__(
        self,
        form: Format,
        sink: Sink,
        session_id: str,
        model: str,
        partial: bool = False,
        listener: Callable[[Wire], None] = lambda _: None,
    ) -> None:
        self.form = form
        self.partial = partial
        self._listener = listener
        self._sink = sink
        self._envelopes = Envelopes(session_id, model)
        self.messages: list[Wire] = []  # kept for json and for callers in Python
        self._closing = (
            threading.Lock()
        )  # taken for good by whoever tells the result: the run, or what ends it by force
        self._closed = False
        # A message and what is known of it change together, also where another thread breaks off.
        self._changing = threading.RLock()
        self._is_broken = False
        self._unanswered: dict[str, tuple[ToolUse, str | None]] = {}
        self._growing: dict[str | None, int | None] = {}  # replies whose pieces are shown, and the open block of each

    def init(self, data: Mapping[str, Any]) -> None:
        """Say what the run has to work with."""
        self._put(self._envelopes.init(data))

    def assistant(self, turn: AssistantTurn, usage: Usage, parent: str | None = None) -> None:
        """Show a whole reply."""
        with self._changing:
            self._unanswered |= {use.id: (use, parent) for use in turn.tool_uses}
            for message in self._envelopes.assistant(turn, usage, parent):
                self._put(message)

    def tool_result(self, result: ToolResult, parent: str | None = None) -> None:
        """Show the answer to a call."""
        with self._changing:
            self._unanswered.pop(result.tool_use_id, None)
            self._put(self._envelopes.tool_result(result, parent))

    def user(self, text: str, parent: str | None = None) -> None:
        """Show what is said in the user's place."""
        self._put(self._envelopes.user(text, parent))

    def system(self, subtype: str, data: Mapping[str, Any], parent: str | None = None) -> None:
        """Show something beside the conversation."""
        self._put(self._envelopes.system(subtype, data, parent))

    def event(self, event: Mapping[str, Any], parent: str | None = None) -> None:
        """Show a piece of a reply, where pieces are wanted."""
        if self.partial:
            with self._changing:
                self._follow(event, parent)
                self._put(self._envelopes.partial(event, parent))

    def result(self, ending: Ending, figures: Mapping[str, Any]) -> None:
        """Close the stream with the one result."""
        if not self._closing.acquire(blocking=False):
            return
        message = result_of(self._envelopes.session_id, ending, figures, with_stats=self.form == "json")
        is_ours = self._changing.acquire(timeout=_PATIENCE_S)
        self._listener(message)
        if self.form == "json":
            self.messages.append(message)
            self._sink.end(compact(self.messages))
        elif self.form == "stream-json":
            self._sink.end(line(message))
        else:
            self._sink.end(*([] if ending.is_error else [message["result"]]))
        self._closed = True
        if is_ours:
            self._changing.release()

    def break_off(self) -> None:
        """Close what is open: pieces of replies, and calls that get no other answer from now on."""
        is_ours = self._changing.acquire(timeout=_PATIENCE_S)  # not if nobody reads what is just being written
        self._close_open()
        self._is_broken = True
        if is_ours:
            self._changing.release()

    def _close_open(self) -> None:
        for parent, index in list(self._growing.items()):
            if index is not None:
                self.event({"type": "content_block_stop", "index": index}, parent)
            self.event({"type": "message_stop"}, parent)
        for use, parent in list(self._unanswered.values()):
            self.tool_result(ToolResult(use.id, use.name, CUT_OFF, True, "cancelled"), parent)

    def _follow(self, event: Mapping[str, Any], parent: str | None) -> None:
        match event["type"]:
            case "message_start" | "content_block_stop":
                self._growing[parent] = None
            case "content_block_start":
                self._growing[parent] = event["index"]
            case "message_stop":
                self._growing.pop(parent, None)

    def _put(self, message: Wire) -> None:
        if not (self._closed or self._is_broken):
            self._write(message)

    def _write(self, message: Wire) -> None:
        self._listener(message)
        if self.form == "json":
            self.messages.append(message)
        elif self.form == "stream-json":
            self._sink.write(line(message))


def result_of(session_id: str, ending: Ending, figures: Mapping[str, Any], with_stats: bool) -> Wire:
    """The result message; the keys that tell success from failure are there or absent, never null by accident."""
    message: Wire = {
        "type": "result",
        "subtype": ending.kind.subtype,
        "uuid": str(uuid.uuid4()),
        "session_id": session_id,
        "is_error": ending.is_error,
        "duration_ms": figures.get("duration_ms", 0),
        "duration_api_ms": figures.get("duration_api_ms", 0),
        "num_turns": figures.get("num_turns", 0),
    }
    captured = None if ending.is_error else ending.captured
    if not ending.is_error:
        message["result"] = answer_of(ending)
    message |= {
        "usage": usage_of(figures.get("usage", Usage())),
        "permission_denials": _list(figures.get("permission_denials")),
        "termination_reason": ending.reason,
        "suppressed_tool_calls": _list(figures.get("suppressed_tool_calls")),
    }
    if figures.get("cost_usd") is not None:
        message["total_cost_usd"] = round(figures["cost_usd"], 6)
    if figures.get("is_estimated"):
        message["usage"]["is_estimated"] = True
    if ending.is_error:
        message["error"] = {"message": ending.message}
    if captured:
        message["structured_result"] = captured.value
        if captured.repairs:
            message["structured_repairs"] = [
                {"pointer": repair.pointer, "from": repair.was, "to": repair.now} for repair in captured.repairs
            ]
    if with_stats and not ending.is_error and "stats" in figures:
        message["stats"] = figures["stats"]
    return message


def answer_of(ending: Ending) -> str:
    """The answer of a run that succeeded, as text output has it."""
    return line(ending.captured.value) if ending.captured else ending.text


def _list(values: Sequence[Any] | None) -> list[Any]:
    return list(values or ())
