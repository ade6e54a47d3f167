"""What is seen of a run from outside, and how it is steered: progress, events, context files, the answer's file."""

from __future__ import annotations

import json
import os
import pty
import re
from pathlib import Path

import jsonschema
import pytest

from dovetail.agent.exit_reasons import KINDS
from dovetail.agent.output import event_schema
from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply, ScriptedServer, Think

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
READ = Reply("I look.", Call("read_file", {"file_path": "a.txt"}, "r"))
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def test_progress_is_told_on_stderr_to_those_who_want_it(bench: Bench) -> None:
    bench.write("a.txt")
    for flags in ([], ["--quiet"]):
        assert "" == bench.run([READ, SO], *flags, form="text").stderr
    said = bench.run([READ, SO], "--verbose", form="text").stderr.splitlines()
    assert 4 == len(said)
    assert re.search(r"scripted  11 in, 7 out, \d+/s  I look\.", said[0])
    assert 'read_file {"file_path": "a.txt"}' in said[1]
    assert "structured_output" in said[3]
    assert "fine" not in "".join(said)  # the answer is for standard output


def test_quiet_runs_say_only_why_they_failed(bench: Bench) -> None:
    failing = [Reply(status=503, message="busy")] * 2
    finished = bench.run(failing, "--quiet", "--max-retries", "1", form="text")
    assert (69, "[API Error: HTTP 503: busy]\n") == (finished.code, finished.stderr)
    assert 1 == bench.run([], "--quiet", "--verbose").code


def test_every_event_is_described(bench: Bench) -> None:
    """`Finished.messages` holds all messages of all tests to the schema; these are the rarer ones."""
    jsonschema.Draft202012Validator.check_schema(event_schema())
    bench.write("a.txt")
    script = [Reply("cut", cut_after=1), Reply(Think("Hm."), "Well.", *READ.blocks), SO]
    finished = bench.run(script, "--include-partial-messages", form="stream-json")
    kinds = {message.get("subtype", message["type"]) for message in finished.messages}
    assert {"init", "api_retry", "assistant", "user", "stream_event", "success"} == kinds
    result = event_schema()["$defs"]["result"]["properties"]
    assert sorted(KINDS) == result["termination_reason"]["enum"]
    assert sorted({kind.subtype for kind in KINDS.values()}) == result["subtype"]["enum"]
    for wrong in ({"type": "result"}, {"type": "other"}, finished.result | {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, event_schema())


def test_exit_codes_beyond_the_contract_have_one_cause_each() -> None:
    """1, 55 and 130 are what scripts that drive headless agents expect; every other code tells the cause alone."""
    codes = [kind.exit_code for kind in KINDS.values() if kind.exit_code not in (0, 1, 55)]
    assert len(codes) == len(set(codes))


def test_the_files_of_the_project_are_read_from_the_root_of_its_repository(bench: Bench, tmp_path: Path) -> None:
    (bench.home / ".dovetail").mkdir()
    (bench.home / ".dovetail" / "AGENTS.md").write_text("of the user")
    (tmp_path / "outside").write_text("of somebody else")
    bench.write(".git/HEAD", "ref: refs/heads/main")
    bench.write("AGENTS.md", "of the project")
    bench.write("sub/CLAUDE.md", "of the folder")
    bench.write("sub/AGENTS.md", "of the project")  # said already
    finished = bench.run([SO], "--workspace", "sub")
    system = bench.received[0]["messages"][0]["content"]
    places = [system.find(text) for text in ("of the user", "of the project", "of the folder")]
    assert -1 not in places
    assert places == sorted(places)
    assert 1 == system.count("of the project")
    assert 3 == len(finished.messages[0]["context_files"])
    for flags in (["--no-context-files"], ["--bare"], ["--safe-mode"]):
        bench.run([SO], "--workspace", "sub", *flags)
        assert "of the " not in bench.received[0]["messages"][0]["content"]
    bench.settings(context={"files": False})
    assert [] == bench.run([SO]).messages[0]["context_files"]


def test_a_link_out_of_the_project_and_a_forbidden_file_are_not_read(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("top-secret")
    (bench.workspace / "AGENTS.md").symlink_to(tmp_path / "outside")
    bench.write("CLAUDE.md", "top-secret")
    bench.settings(permissions={"deny": ["Read(CLAUDE.md)"]})
    assert 0 == bench.run([SO]).code
    assert "top-secret" not in json.dumps(bench.received)


def test_the_answer_is_written_to_a_file_too(bench: Bench) -> None:
    path = bench.workspace / "answer.json"
    for form in ("text", "json", "stream-json"):
        assert 0 == bench.run([SO], "--output-file", "answer.json", form=form).code
        assert '{"summary":"fine"}\n' == path.read_text()
    assert 69 == bench.run([Reply(status=400)], "--output-file", "answer.json").code
    assert not path.exists()  # nobody takes an old answer for the new one
    for bad in ("", ".", "nowhere/answer.json"):
        assert 52 == bench.run([SO], "--output-file", bad).code
    finished = bench.run([SO], "--output-file", "/dev/full")
    assert 74 == finished.code
    os.mkfifo(bench.workspace / "pipe")
    reading = os.open(bench.workspace / "pipe", os.O_RDWR | os.O_NONBLOCK)
    assert 0 == bench.run([SO], "--output-file", "pipe").code
    assert b'{"summary":"fine"}\n' == os.read(reading, 100)
    os.close(reading)


def test_a_folder_beside_the_workspace_can_be_worked_in(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("from beside")
    read = Reply(Call("read_file", {"file_path": str(other / "b.txt")}, "r"))
    assert bench.run([read, SO]).results()["r"]["is_error"]
    finished = bench.run([read, SO], "--add-dir", str(other))
    assert (0, "from beside") == (finished.code, bench.answers()["r"])
    assert 52 == bench.run([], "--add-dir", "nowhere").code


def test_images_that_a_prompt_mentions_go_to_the_model_as_images(bench: Bench) -> None:
    (bench.workspace / "shot.png").write_bytes(PNG)
    bench.write("notes.txt", "remember")
    assert 0 == bench.run([SO], prompt="compare @shot.png with @notes.txt").code
    text, image = bench.received[0]["messages"][-1]["content"]
    assert "remember" in text["text"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert 0 == bench.run([Reply("again")], "--continue", schema=None).code
    assert "image_url" in json.dumps(bench.received[0]["messages"][1])
    (bench.workspace / "huge.png").write_bytes(PNG + b"\0" * (6 << 20))
    assert 52 == bench.run([], prompt="look at @huge.png").code


def test_nothing_that_a_model_says_steers_the_terminal(bench: Bench) -> None:
    evil = "\x1b]0;title\x07 \x9b2J\r"
    calls = [Call("read_file", {"file_path": evil}, "r"), Call(evil, {}, "t")]
    finished = bench.run([Reply(evil, *calls), Reply(status=400, message=evil)], "--verbose", schema=None, form="text")
    assert 69 == finished.code
    assert "\\x1b]0;title\\x07" in finished.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", finished.stderr)
    piped = bench.run([Reply(evil + "words")], schema=None, form="text")
    assert "\x1b]0;title\x07 \x9b2J" in piped.stdout
    ours, theirs = pty.openpty()
    with ScriptedServer([Reply(evil + "words")]) as server:
        assert 0 == bench.start(server, schema=None, form="text", stdout=theirs).finish().code
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    os.close(theirs)
    assert "\\x1b]0;title\\x07 \\x9b2J\\x0dwords" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("flag", ["--output-file", "--workspace", "--add-dir"])
@pytest.mark.parametrize("name", ["~nobody-here/x", "x" * 5000, "a/../../b", "self/x"])
def test_names_that_no_file_can_have_are_told(bench: Bench, flag: str, name: str) -> None:
    (bench.workspace / "self").symlink_to("self")
    finished = bench.run([], flag, name)
    assert (52, []) == (finished.code, bench.received)
    assert f"{flag}: " in finished.result["error"]["message"]
