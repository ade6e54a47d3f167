"""Transcripts: a session is written, read back and continued, without the answer in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.protocols import Recorder
from dovetail.agent.recording import SessionError, Sessions, Transcript
from dovetail.agent.types import (
    REDACTED_ARGUMENTS,
    AssistantTurn,
    Text,
    Thinking,
    ToolResult,
    ToolTurn,
    ToolUse,
    Turn,
    Usage,
    UserTurn,
)

ID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "My Work", tmp_path / "home")


CALL = ToolUse.of("c1", "read_file", {"file_path": "ü"})
CONVERSATION: list[Turn] = [
    UserTurn("do\nit"),
    AssistantTurn((Thinking("hm", "sig"), Text("Looking."), CALL, ToolUse("c2", "x", "{broken", None, "s2"))),
    ToolTurn(
        (ToolResult("c1", "read_file", "content", display="shown"), ToolResult("c2", "x", "bad", True, "invalid"))
    ),
    AssistantTurn((Text("done"),)),
]


def write(transcript: Recorder, turns: list[Turn]) -> None:
    for turn in turns:
        transcript.record(turn, usage=Usage(3, 2, 1), model="m")
    assert transcript.flush() is None
    transcript.close()


def test_a_session_comes_back_as_it_was(sessions: Sessions) -> None:
    write(sessions.new(ID), CONVERSATION)
    transcript, turns = sessions.resume(ID)
    assert CONVERSATION == turns
    write(transcript, [UserTurn("more")])
    assert [*CONVERSATION, UserTurn("more")] == sessions.resume(ID)[1]


def test_a_record_has_the_shape_that_readers_know(sessions: Sessions, tmp_path: Path) -> None:
    (tmp_path / "My Work" / ".git").mkdir(parents=True)
    (tmp_path / "My Work" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    write(sessions.new(ID), CONVERSATION)
    path = (
        tmp_path
        / "home/projects"
        / str((tmp_path / "My Work").resolve()).replace("/", "-").replace(" ", "-").replace("_", "-")
        / "chats"
        / f"{ID}.jsonl"
    )
    user, assistant, first, second, _ = map(json.loads, path.read_text().splitlines())
    assert 0o600 == path.stat().st_mode & 0o777
    assert (None, user["uuid"]) == (user["parentUuid"], assistant["parentUuid"])
    assert ("user", "real_user", "main", ID) == (user["type"], user["provenance"], user["gitBranch"], user["sessionId"])
    assert {"role": "user", "parts": [{"text": "do\nit"}]} == user["message"]
    assert ("assistant", "assistant_output", "m") == (assistant["type"], assistant["provenance"], assistant["model"])
    assert {"id": "c1", "name": "read_file", "args": {"file_path": "ü"}} == assistant["message"]["parts"][2][
        "functionCall"
    ]
    assert 3 == assistant["usageMetadata"]["promptTokenCount"]
    assert "tool_result" == first["type"]
    assert ("c1", "success", "shown") == tuple(
        first["toolCallResult"][key] for key in ("callId", "status", "resultDisplay")
    )
    assert ("error", "invalid") == tuple(second["toolCallResult"][key] for key in ("status", "executionStatus"))


SECRET = "zanzibar-payload"


def structured(arguments: str = "") -> list[Turn]:
    use = (
        ToolUse("s1", "structured_output", arguments, None)
        if arguments
        else ToolUse.of("s1", "structured_output", {"k": SECRET})
    )
    return [
        AssistantTurn((use, ToolUse.of("r1", "read_file", {"file_path": "open"}))),
        ToolTurn(
            (
                ToolResult("s1", "structured_output", f"hook: {SECRET}", True, "denied"),
                ToolResult("r1", "read_file", "y"),
            )
        ),
    ]


@pytest.mark.parametrize("arguments", ["", f'{{"k": "{SECRET}'])
def test_nothing_of_the_answer_is_kept(sessions: Sessions, arguments: str) -> None:
    transcript = sessions.new(ID, redacts=True)
    write(transcript, structured(arguments))
    text = transcript.path.read_text()
    assert SECRET not in text
    assert 1 == text.count("structured_output payload (see stdout result)")
    assert '"file_path": "open"' in text
    turn = sessions.resume(ID)[1][0]
    assert isinstance(turn, AssistantTurn)
    assert REDACTED_ARGUMENTS == turn.tool_uses[0].value


def test_each_attempt_has_its_own_placeholder(sessions: Sessions) -> None:
    transcript = sessions.new(ID, redacts=True)
    write(transcript, structured() * 3)
    assert 3 == transcript.path.read_text().count("structured_output payload (see stdout result)")


def test_a_tool_of_that_name_is_recorded_where_there_is_no_contract(sessions: Sessions) -> None:
    transcript = sessions.new(ID)
    write(transcript, structured())
    assert SECRET in transcript.path.read_text()


@given(st.integers(0, 2000), st.booleans())
def test_a_transcript_cut_anywhere_is_still_read_and_continued(
    tmp_path_factory: pytest.TempPathFactory, cut: int, again: bool
) -> None:
    root = tmp_path_factory.mktemp("cut")
    sessions = Sessions(root, root / "home")
    transcript = sessions.new(ID)
    write(transcript, CONVERSATION)
    whole = transcript.path.read_bytes()
    transcript.path.write_bytes(whole[: max(0, len(whole) - cut)])
    resumed, turns = sessions.resume(ID)
    kept = [turn for turn in turns if not isinstance(turn, ToolTurn)]
    assert [turn for turn in CONVERSATION if not isinstance(turn, ToolTurn)][: len(kept)] == kept
    for before, after in zip(turns, [*turns[1:], UserTurn("")], strict=True):
        if isinstance(before, AssistantTurn) and before.tool_uses:
            assert isinstance(after, ToolTurn)
            assert [use.id for use in before.tool_uses] == [result.tool_use_id for result in after.results]
    if again:
        write(resumed, [UserTurn("more")])
        assert [*turns, UserTurn("more")] == sessions.resume(ID)[1]


def test_lines_that_are_no_records_are_passed_over(sessions: Sessions) -> None:
    transcript = sessions.new(ID)
    write(transcript, [UserTurn("one")])
    with open(transcript.path, "ab") as file:
        file.write(b'\xff\n[]\n{"uuid": 3}\n' + b"[" * 100_000 + b"\n\n")
    assert [UserTurn("one")] == sessions.resume(ID)[1]


def test_hostile_records_do_no_harm(sessions: Sessions) -> None:
    transcript = sessions.new(ID)
    transcript.path.parent.mkdir(parents=True)
    records = [
        {"uuid": "a", "parentUuid": "b", "type": "user", "message": "text"},
        {
            "uuid": "b",
            "parentUuid": "a",
            "type": "assistant",
            "message": {"parts": [1, {"functionCall": {"args": [1]}}]},
        },
        {"uuid": "c", "parentUuid": "b", "type": "tool_result", "message": {"parts": [{"functionResponse": {}}]}},
    ]
    transcript.path.write_text("\n".join(json.dumps(record) for record in records))
    turns = sessions.resume(ID)[1]
    assert isinstance(turns[0], UserTurn)
    assert isinstance(turns[-1], ToolTurn)


def test_history_follows_the_newest_branch(sessions: Sessions) -> None:
    write(sessions.new(ID), [UserTurn("one")])
    left, _ = sessions.resume(ID)
    right, _ = sessions.resume(ID)
    write(left, [UserTurn("left")])
    write(right, [UserTurn("right")])
    assert [UserTurn("one"), UserTurn("right")] == sessions.resume(ID)[1]


def test_a_fork_leaves_the_first_session_alone(sessions: Sessions) -> None:
    write(sessions.new(ID), CONVERSATION)
    forked, turns = sessions.resume(ID, fork=OTHER)
    assert CONVERSATION == turns
    write(forked, [UserTurn("more")])
    assert CONVERSATION == sessions.resume(ID)[1]
    assert [*CONVERSATION, UserTurn("more")] == sessions.resume(OTHER)[1]
    assert {OTHER} == {record["sessionId"] for record in sessions.records(OTHER)}


def test_sessions_are_found_by_id_title_and_age(sessions: Sessions) -> None:
    assert sessions.latest() is None
    write(sessions.new(ID), [UserTurn("fix the bug\nplease")])
    other = sessions.new(OTHER)
    other.system("custom_title", {"customTitle": "release"})
    write(other, [UserTurn("other")])
    os.utime(other.path, (1, 1))
    assert ID == sessions.latest()
    assert OTHER == sessions.find("release")
    assert ID == sessions.find("fix the bug")
    assert ID == sessions.find(ID.upper())
    with pytest.raises(SessionError, match="no session 'unknown'"):
        sessions.find("unknown")


def test_two_sessions_of_one_title_are_told_apart_by_id(sessions: Sessions) -> None:
    for session in (ID, OTHER):
        write(sessions.new(session), [UserTurn("same")])
    with pytest.raises(SessionError) as caught:
        sessions.find("same")
    assert ID in caught.value.fix


def test_an_id_is_used_once_and_names_no_other_file(sessions: Sessions) -> None:
    write(sessions.new("aaaaaaaa-2222-4333-8444-555555555555"), [UserTurn("x")])
    with pytest.raises(SessionError, match="exists already"):
        sessions.new("AAAAAAAA-2222-4333-8444-555555555555")
    with pytest.raises(SessionError, match="cannot be the id"):
        sessions.new("../../evil")


def test_a_file_that_cannot_be_written_is_told_and_stops_nothing(sessions: Sessions, tmp_path: Path) -> None:
    sessions.folder.parent.parent.mkdir(parents=True)
    sessions.folder.parent.write_text("a file where a folder should be")
    transcript = sessions.new(ID)
    transcript.record(UserTurn("x"))
    transcript.record(UserTurn("y"))
    assert "directory" in (transcript.flush() or "").lower()
    transcript.close()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    transcript = Transcript(Path("/dev/full"), ID, tmp_path)
    transcript.record(UserTurn("x"))
    assert "No space left" in (transcript.flush() or "")
    transcript.close()


BLOCKS = st.one_of(
    st.builds(Text, st.text(max_size=8)),
    st.builds(Thinking, st.text(max_size=8), st.text(max_size=4)),
    st.builds(
        ToolUse.of, st.uuids().map(str), st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.integers())
    ),
)


@given(st.lists(st.lists(BLOCKS, max_size=4).map(lambda blocks: AssistantTurn(tuple(blocks))), max_size=4))
def test_any_turns_come_back(tmp_path_factory: pytest.TempPathFactory, turns: list[AssistantTurn]) -> None:
    root = tmp_path_factory.mktemp("any")
    sessions = Sessions(root, root)
    answered: list[Turn] = []
    for turn in turns:
        answered.append(turn)
        if turn.tool_uses:
            answered.append(ToolTurn(tuple(ToolResult(use.id, use.name, "ok") for use in turn.tool_uses)))
    write(sessions.new(ID), answered)
    assert answered == sessions.resume(ID)[1]
