"""What becomes the prompt: what was typed, with the files that it mentions, and what was piped in, as it is."""

from __future__ import annotations

import os
import time

import pytest

from dovetail.agent.prompt import MAX_PIPED_BYTES
from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply, ScriptedServer

GOOD = Reply(Call("structured_output", {"summary": "fine"}))
PIPED = ['@app.route("/users/<id>")', " @.env", "@./missing.txt", "@/etc/hostname", "see @notes.txt\n", "@~/x"]
TEXT = ["npm install @types/node", "@app.route('/a/b')", "@nobody", "@a/b/c", "@~other/x", "@" + "x" * 5000, "@a\\ b/c"]
MISSING = ["@./missing", "@../missing", "@/missing", "@~/missing", "read (@no, but) @./missing."]


@pytest.mark.parametrize("piped", PIPED)
def test_piped_text_is_never_searched_for_mentions(bench: Bench, piped: str) -> None:
    bench.write(".env", "KEY=very-secret")
    bench.write("notes.txt", "very-secret")
    finished = bench.run([GOOD], prompt="Safe to merge?", stdin=piped)
    assert (0, f"{piped}\n\nSafe to merge?") == (finished.code, bench.received[0]["messages"][-1]["content"])


def test_a_prompt_that_is_only_piped_is_data_too(bench: Bench) -> None:
    bench.write("notes.txt", "very-secret")
    assert 0 == bench.run([GOOD], prompt="", stdin="@notes.txt @./missing").code
    assert "very-secret" not in str(bench.received)


@pytest.mark.parametrize("typed", TEXT)
def test_a_mention_that_is_no_file_is_text(bench: Bench, typed: str) -> None:
    finished = bench.run([GOOD], prompt=f"why does {typed} fail")
    assert (0, f"why does {typed} fail") == (finished.code, bench.received[0]["messages"][-1]["content"])


@pytest.mark.parametrize("typed", MISSING)
def test_a_mention_that_is_written_as_a_path_has_to_be_a_file(bench: Bench, typed: str) -> None:
    assert (42, []) == (bench.run([], prompt=typed).code, bench.received)


def test_input_that_never_ends_is_told_and_ends_with_the_wall_time(bench: Bench) -> None:
    reading, writing = os.pipe()
    with ScriptedServer([]) as server:
        running = bench.start(server, "--max-wall-time", "4", stdin_descriptor=reading)
        os.write(writing, b"the beginning")
        finished = running.finish()
    os.close(writing)
    os.close(reading)
    assert (55, "wall_time") == (finished.code, finished.result["termination_reason"])
    assert "Waiting for standard input to end." in finished.stderr


def test_input_that_comes_slowly_is_read_to_its_end(bench: Bench) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with ScriptedServer([GOOD]) as server:
        running = bench.start(server, stdin_descriptor=reading)
        for piece in (b"one ", b"two ", b"three"):
            os.write(writing, piece)
            time.sleep(0.2)
        os.close(writing)
        finished = running.finish()
        received = server.received[0].body
    os.close(reading)
    assert (0, "one two three\n\ndo it") == (finished.code, received["messages"][-1]["content"])


def test_input_is_whole_or_refused(bench: Bench) -> None:
    finished = bench.run([GOOD], stdin="x" * MAX_PIPED_BYTES)
    assert (0, MAX_PIPED_BYTES + 7) == (finished.code, len(bench.received[0]["messages"][-1]["content"]))
    finished = bench.run([GOOD], stdin="x" * (MAX_PIPED_BYTES + 1))
    assert (42, []) == (finished.code, bench.received)
    assert f"longer than {MAX_PIPED_BYTES} bytes" in finished.result["error"]["message"]
