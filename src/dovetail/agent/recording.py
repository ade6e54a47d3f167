"""Transcripts: one JSONL file per session, with everything but the arguments of the terminal tool.

Transcript   appends records as a run goes on; a crash costs at most the line that was being written
Sessions     the transcripts of one workspace: the latest, one by id or title, and the turns in it

A record points to the one before it (`parentUuid`), so that several runs can go on from the same place; history is
read from the newest record back to the first.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dovetail.agent.exit_reasons import CUT_OFF
from dovetail.agent.settings import dovetail_home
from dovetail.agent.types import (
    REDACTED_ARGUMENTS,
    STRUCTURED_OUTPUT,
    AssistantTurn,
    Block,
    Image,
    Text,
    Thinking,
    ToolResult,
    ToolTurn,
    ToolUse,
    Turn,
    Usage,
    UserTurn,
    is_like_terminal,
)
from dovetail.errors import InputError
from dovetail.messages import to_json

MAX_LINE_BYTES = 64 << 20
_TITLE = 80
_STATUSES = frozenset("ok error invalid denied not_found skipped duplicate cancelled".split())
# Results of the terminal tool whose text may quote what it was given: words of hooks and of failures.
_QUOTING = frozenset(("denied", "error"))


_NOT_KEPT = (
    "[This session goes on without that answer: what the call was given is not kept. Where it matters, say so, or work "
    "it out again.]"
)


class SessionError(InputError):
    """There is no such session, or it exists already."""


@dataclass(slots=True)
class Transcript:
    """The record of one session; nothing that goes wrong with the file stops the run, but `flush` tells it.

    With `redacts`, calls of the terminal tool are kept without their arguments.
    """

    path: Path
    session_id: str
    cwd: Path
    redacts: bool = False
    keeps_answers: bool = False
    answers: dict[str, Any] = field(default_factory=dict)  # of accepted calls, by their ids
    parent: str | None = None
    _file: int | None = None
    _problem: str | None = None
    _branch: str = field(default="")
    _given: dict[str, Any] = field(default_factory=dict)  # what calls of the terminal tool were given

    def record(self, turn: Turn, *, usage: Usage | None = None, model: str = "", subtype: str = "") -> None:
        """Append a turn; the answers to several calls are a record each."""
        match turn:
            case UserTurn(text, images):
                provenance = "real_user" if not subtype else "system"
                pictures = [{"inlineData": {"mimeType": i.media_type, "data": i.base64}} for i in images]
                self._append("user", provenance, {"message": _content("user", [{"text": text}, *pictures])}, subtype)
            case AssistantTurn(blocks):
                parts = [_block_part(self._public(block)) for block in blocks]
                more: dict[str, Any] = {"model": model, "message": _content("model", parts)}
                if usage is not None:
                    more["usageMetadata"] = _usage(usage)
                self._append("assistant", "assistant_output", more, subtype)
            case ToolTurn(results):
                for result in results:
                    self._result(result)

    def system(self, subtype: str, data: Mapping[str, Any]) -> None:
        """Append something that is no turn."""
        self._append("system", "system", {"systemPayload": dict(data)}, subtype)

    def flush(self) -> str | None:
        """Bring everything to disk; the problem in words if something could not be written."""
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                self._problem = self._problem or str(error)
        return self._problem

    def close(self) -> None:
        """Flush and let the file go."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def keep_answers(self, answers: Mapping[str, Any]) -> None:
        """Keep accepted answers beside the transcript, for its owner and for those who go on with the session."""
        self.answers.update(answers)
        path = _answers_path(self.path)
        try:
            _make_private(path.parent)
            with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(to_json(self.answers))
        except OSError as error:
            self._problem = self._problem or f"{path}: {error.strerror or error}"

    def _public(self, block: Block) -> Block:
        if self.redacts and isinstance(block, ToolUse) and is_like_terminal(block.name):
            self._given[block.id] = block.value
            return ToolUse.of(block.id, block.name, REDACTED_ARGUMENTS)
        return block

    def _result(self, result: ToolResult) -> None:
        if self.redacts and result.name == STRUCTURED_OUTPUT:
            if self.keeps_answers and result.status == "ok":
                self.keep_answers({result.tool_use_id: self._given.get(result.tool_use_id)})
            result = _redacted(result)
        response = {"error" if result.is_error else "output": result.content}
        part = {"functionResponse": {"id": result.tool_use_id, "name": result.name, "response": response}}
        meta = {
            "callId": result.tool_use_id,
            "status": "error" if result.is_error else "success",
            "executionStatus": result.status,
            "resultDisplay": result.display,
        }
        self._append("tool_result", "tool_result", {"message": _content("user", [part]), "toolCallResult": meta}, "")

    def _append(self, kind: str, provenance: str, more: Mapping[str, Any], subtype: str) -> None:
        from dovetail import __version__

        own = str(uuid.uuid4())
        record = {
            "uuid": own,
            "parentUuid": self.parent,
            "sessionId": self.session_id,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "type": kind,
            **({"subtype": subtype} if subtype else {}),
            "provenance": provenance,
            "cwd": str(self.cwd),
            "version": __version__,
            **more,
        }
        branch = self._git_branch()
        if branch:
            record["gitBranch"] = branch
        self._write(to_json(record).encode() + b"\n")
        self.parent = own

    def _write(self, line: bytes) -> None:
        try:
            if self._file is None:
                self._file = _open(self.path)
            while line:  # one call nearly always; a full disk takes a part and then says so
                line = line[os.write(self._file, line) :]
        except OSError as error:
            self._problem = self._problem or f"{self.path}: {error.strerror or error}"

    def _git_branch(self) -> str:
        if not self._branch:
            self._branch = _git_branch(self.cwd) or "-"
        return self._branch.removeprefix("-")


class Sessions:
    """The sessions of one workspace."""

    def __init__(self, workspace: Path, home: Path | None = None) -> None:
        self._workspace = workspace.resolve()
        slug = re.sub(r"[^a-zA-Z0-9]", "-", str(self._workspace))
        self.folder = (home or dovetail_home()) / "projects" / slug / "chats"

    def new(self, session_id: str | None = None, *, redacts: bool = False, keeps_answers: bool = False) -> Transcript:
        """A session that does not exist yet; SessionError if its id is taken."""
        session_id = session_id or str(uuid.uuid4())
        if any(session_id.lower() == known.lower() for known in self.ids()):
            raise SessionError(
                f"the session {session_id} exists already", "--session-id", "use --resume to go on with it"
            )
        return Transcript(self._path(session_id), session_id, self._workspace, redacts, keeps_answers)

    def resume(
        self, session_id: str, *, redacts: bool = False, keeps_answers: bool = False, fork: str | None = None
    ) -> tuple[Transcript, list[Turn]]:
        """Go on with a session, or with a copy of it under the id `fork`."""
        records = list(self.records(session_id))
        answers = _answers(self._path(session_id))
        if fork is not None:
            transcript = self.new(fork, redacts=redacts, keeps_answers=keeps_answers)
            if answers:
                transcript.keep_answers(answers)
            transcript._write(b"".join(to_json({**record, "sessionId": fork}).encode() + b"\n" for record in records))
        else:
            path = self._path(session_id)
            transcript = Transcript(path, session_id, self._workspace, redacts, keeps_answers, answers)
        transcript.parent = records[-1]["uuid"] if records else None
        return transcript, [_answered(turn, answers) for turn in _turns(_line_of_descent(records))]

    def ids(self) -> list[str]:
        """All sessions, the one used last first."""
        try:
            files = [(path.stat().st_mtime_ns, path.stem) for path in self.folder.glob("*.jsonl")]
        except OSError:
            return []
        return [stem for _, stem in sorted(files, reverse=True)]

    def latest(self) -> str | None:
        """The session used last that has something in it."""
        return next((known for known in self.ids() if any(self.records(known))), None)

    def find(self, wanted: str) -> str:
        """The session of this id or title; a title is given by a record, or is the first line of the first prompt."""
        known = self.ids()
        for session_id in known:
            if session_id.lower() == wanted.lower():
                return session_id
        titled = [session_id for session_id in known if self.title(session_id) == wanted.strip()]
        if len(titled) == 1:
            return titled[0]
        if titled:
            raise SessionError(
                f"{len(titled)} sessions are called {wanted!r}", "--resume", f"use one of: {', '.join(titled)}"
            )
        raise SessionError(
            f"there is no session {wanted!r}", "--resume", "use the id or the title of a session in this folder"
        )

    def title(self, session_id: str) -> str:
        """What the session is called."""
        title = ""
        for record in self.records(session_id):
            if record.get("subtype") == "custom_title":
                payload = record.get("systemPayload")
                title = str(payload.get("customTitle", "")) if isinstance(payload, dict) else title
            elif record.get("type") == "user" and not title:
                title = _text(record).strip().split("\n")[0][:_TITLE]
        return title.strip()

    def records(self, session_id: str) -> Iterator[dict[str, Any]]:
        """The records of a session; lines that are cut or no records are passed over."""
        try:
            file = open(self._path(session_id), "rb")  # noqa: SIM115 - closed by the with statement below
        except OSError:
            return
        with file:
            while line := file.readline(MAX_LINE_BYTES):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict) and isinstance(record.get("uuid"), str):
                    yield record

    def _path(self, session_id: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", session_id):
            raise SessionError(f"{session_id!r} cannot be the id of a session", "--session-id", "use a UUID")
        return self.folder / f"{session_id}.jsonl"


def _answers_path(transcript: Path) -> Path:
    return transcript.with_suffix(".answers.json")


def _answers(transcript: Path) -> dict[str, Any]:
    """The answers that were kept beside a transcript, by the ids of their calls."""
    try:
        value = json.loads(_answers_path(transcript).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _answered(turn: Turn, answers: Mapping[str, Any]) -> Turn:
    """The turn with answers that were kept in place of placeholders; that others were not kept is told the model."""
    match turn:
        case AssistantTurn(blocks):
            return AssistantTurn(tuple(_with_answer(block, answers) for block in blocks))
        case ToolTurn(results):
            return ToolTurn(
                tuple(
                    replace(result, content=f"{result.content}\n{_NOT_KEPT}")
                    if result.name == STRUCTURED_OUTPUT and result.status == "ok" and result.tool_use_id not in answers
                    else result
                    for result in results
                )
            )
        case _:
            return turn


def _with_answer(block: Block, answers: Mapping[str, Any]) -> Block:
    if isinstance(block, ToolUse) and isinstance(answer := answers.get(block.id), dict):
        return ToolUse.of(block.id, block.name, answer)
    return block


def _redacted(result: ToolResult) -> ToolResult:
    """A result of the terminal tool as it may be kept."""
    if result.status not in _QUOTING:
        return result
    text = f"The call was not accepted ({result.status}); why is not recorded."
    return ToolResult(result.tool_use_id, result.name, text, result.is_error, result.status)


def _open(path: Path) -> int:
    _make_private(path.parent)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")  # the line that a crash cut off is closed, so that the next one is whole
    return file


def _make_private(folder: Path) -> None:
    """Make a folder and those above it for their owner alone; `mkdir` gives its mode only to the last one."""
    if not folder.exists():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _line_of_descent(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records from the first to the newest, by their parents."""
    by_id = {record["uuid"]: record for record in records}
    line: list[dict[str, Any]] = []
    at = records[-1]["uuid"] if records else None
    while at in by_id:
        record = by_id.pop(at)  # taken out, so that a circle ends
        line.append(record)
        at = record.get("parentUuid")
    return line[::-1]


def _turns(records: Sequence[dict[str, Any]]) -> list[Turn]:
    """The turns that records tell of; every call has an answer, if only that it was cut off."""
    turns: list[Turn] = []
    open_calls: dict[str, ToolUse] = {}
    results: list[ToolResult] = []

    def answer() -> None:
        nonlocal results
        results += [ToolResult(use.id, use.name, CUT_OFF, True, "cancelled") for use in open_calls.values()]
        if results:
            turns.append(ToolTurn(tuple(results)))
        results = []
        open_calls.clear()

    for record in records:
        kind = record.get("type")
        if kind == "tool_result":
            results += [result for result in _results(record) if open_calls.pop(result.tool_use_id, None) is not None]
        elif record.get("subtype") == "chat_compression":
            answer()
            turns[:] = _summed_up(turns, record.get("systemPayload"))
        elif kind in ("user", "assistant"):
            answer()
            turn: Turn = UserTurn(_text(record), _images(record)) if kind == "user" else AssistantTurn(_blocks(record))
            turns.append(turn)
            if isinstance(turn, AssistantTurn):
                open_calls.update({use.id: use for use in turn.tool_uses})
    answer()
    return turns


def _summed_up(turns: Sequence[Turn], payload: Any) -> list[Turn]:
    """The turns after a summary took the place of all but the latest; unchanged where the record is no summary."""
    match payload:
        case {"text": str(text), "keptTurns": int(kept)} if 0 <= kept <= len(turns):
            return [UserTurn(text), *turns[len(turns) - kept :]]
        case _:
            return list(turns)


def _parts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _text(record: Mapping[str, Any]) -> str:
    return "".join(str(part.get("text", "")) for part in _parts(record))


def _images(record: Mapping[str, Any]) -> tuple[Image, ...]:
    images: list[Image] = []
    for part in _parts(record):
        match part:
            case {"inlineData": {"mimeType": str(kind), "data": str(data)}}:
                with contextlib.suppress(ValueError):
                    images.append(Image(kind, base64.b64decode(data, validate=True)))
    return tuple(images)


def _blocks(record: Mapping[str, Any]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for part in _parts(record):
        call = part.get("functionCall")
        signature = str(part.get("thoughtSignature", ""))
        if isinstance(call, dict):
            args = call.get("args")
            written = call.get("rawArgs", to_json(args))
            value = args if isinstance(args, dict) and "rawArgs" not in call else None
            blocks.append(ToolUse(str(call.get("id", "")), str(call.get("name", "")), written, value, signature))
        elif part.get("thought"):
            blocks.append(Thinking(str(part.get("text", "")), signature))
        elif "text" in part:
            blocks.append(Text(str(part["text"])))
    return tuple(blocks)


def _results(record: Mapping[str, Any]) -> Iterator[ToolResult]:
    meta = record.get("toolCallResult")
    meta = meta if isinstance(meta, dict) else {}
    status = meta.get("executionStatus")
    for part in _parts(record):
        response = part.get("functionResponse")
        if isinstance(response, dict) and isinstance(response.get("response"), dict):
            inner = response["response"]
            failed = "error" in inner
            yield ToolResult(
                str(response.get("id", "")),
                str(response.get("name", "")),
                str(inner.get("error" if failed else "output", "")),
                failed,
                status if status in _STATUSES else "error" if failed else "ok",
                meta.get("resultDisplay"),
            )


def _content(role: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _block_part(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"text": text}
        case Thinking(text, signature):
            return {"text": text, "thought": True, **({"thoughtSignature": signature} if signature else {})}
        case ToolUse(id, name, arguments, value, signature):
            # Arguments that are no object are kept as they were written.
            args = {"args": value} if value is not None else {"args": {}, "rawArgs": arguments}
            call = {"functionCall": {"id": id, "name": name, **args}}
            return {**call, "thoughtSignature": signature} if signature else call


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }


def _git_branch(folder: Path) -> str:
    """The branch that is checked out, read from the repository's own file; "" where there is none."""
    for place in (folder, *folder.parents):
        head = place / ".git" / "HEAD"
        try:
            if head.is_file():
                return head.read_text()[:1000].strip().removeprefix("ref: refs/heads/")[:200]
        except (OSError, UnicodeDecodeError):
            return ""
    return ""
