"""Limits and signals, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.agent import chaos
from tests.agent.cli.conftest import Bench, alive, until
from tests.agent.servers import Call, Received, Reply, ScriptedServer

NOTE = "Note: --json-schema is active. If the model never called structured_output, verify it isn't denied by"


def so(id: str = "so") -> Call:
    return Call("structured_output", {"summary": "fine"}, id)


def reads(request: Received) -> Reply:
    """A model that only ever reads."""
    return Reply(Call("read_file", {"file_path": "a.txt", "offset": request.serial}, f"r{request.serial}"))


def test_the_turn_cap_allows_exactly_so_many_model_calls(bench: Bench) -> None:
    """Scenarios 48 to 51."""
    bench.write("a.txt")
    for cap in (0, 2):
        finished = bench.run(reads, "--max-session-turns", str(cap))
        assert (53, cap, "max_turns", "error_max_turns") == (
            finished.code,
            len(bench.received),
            finished.result["termination_reason"],
            finished.result["subtype"],
        )
        error = json.loads(finished.stderr)["error"]
        assert ("FatalTurnLimitedError", 53) == (error["type"], error["code"])
        assert error["message"].startswith("Reached max session turns for this session.")
        assert NOTE in error["message"]
    plain = bench.run(reads, "--max-session-turns", "1", schema=None, form="text")
    assert (53, "") == (plain.code, plain.stdout)
    assert "Reached max session turns" in plain.stderr
    assert NOTE not in plain.stderr


def test_a_run_that_needs_n_turns_of_work_needs_a_cap_of_n_plus_one(bench: Bench) -> None:
    bench.write("a.txt")
    script = [Reply(Call("read_file", {"file_path": "a.txt"})), Reply(so())]
    assert 53 == bench.run(script, "--max-session-turns", "1").code
    assert 0 == bench.run(script, "--max-session-turns", "2").code
    # Where no turn is left for a reminder, prose is final.
    assert (1, 1) == (bench.run([Reply("prose")], "--max-session-turns", "1").code, len(bench.received))


def test_the_terminal_call_is_free_of_the_tool_budget(bench: Bench) -> None:
    """Scenario 52."""
    bench.write("a.txt")
    script = [Reply(Call("read_file", {"file_path": "a.txt"})), Reply(Call("structured_output", {})), Reply(so())]
    assert 0 == bench.run(script, "--max-tool-calls", "1").code


@pytest.mark.parametrize("most", [0, 1])
def test_a_call_beyond_the_tool_budget_is_not_made(bench: Bench, most: int) -> None:
    """Scenarios 53 and 54."""
    writes = [Reply(Call("write_file", {"file_path": f"{i}.txt", "content": "x"}, f"w{i}")) for i in range(3)]
    finished = bench.run(writes, "--max-tool-calls", str(most), "-y")
    assert (55, "tool_calls") == (finished.code, finished.result["termination_reason"])
    message = f"Run aborted: tool-call budget of {most} exceeded (--max-tool-calls); observed {most + 1}."
    assert message == finished.result["error"]["message"]
    assert most == len(list(bench.workspace.iterdir()))
    assert [use["id"] for use in finished.uses()] == list(finished.results())


def test_a_parallel_batch_launches_only_what_the_budget_allows(bench: Bench) -> None:
    """Scenario 55."""
    bench.write("a.txt", "alpha")
    calls = [Call("read_file", {"file_path": "a.txt", "limit": i + 1}, f"r{i}") for i in range(5)]
    finished = bench.run([Reply(*calls)], "--max-tool-calls", "2")
    assert 55 == finished.code
    assert [False, False, True, True, True] == [block["is_error"] for block in finished.results().values()]
    assert "Cancelled: the run ended before this call did." == finished.results()["r4"]["content"]


def test_time_that_runs_out_in_the_middle_of_a_stream_ends_it_cleanly(bench: Bench) -> None:
    """Scenario 56, and with a tool that runs."""
    stalled = Reply("some words that", stall_after=2)
    finished = bench.run([stalled], "--max-wall-time", "4", "--include-partial-messages", form="stream-json")
    assert 55 == finished.code
    assert "Run aborted: wall-clock budget of 4s exceeded (--max-wall-time).\n" == finished.stderr
    assert ("wall_time", 55) == (finished.result["termination_reason"], finished.code)
    kinds = [message["event"]["type"] for message in finished.messages if message["type"] == "stream_event"]
    assert ("message_start", "message_stop") == (kinds[0], kinds[-1])
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")
    sleeping = [Reply(Call("run_shell_command", {"command": "sleep 60; touch late"}, "slow"))]
    finished = bench.run(sleeping, "--max-wall-time", "4", "-y")
    assert (55, ["slow"]) == (finished.code, list(finished.results()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_a_signal_while_the_model_talks_ends_with_130(bench: Bench, number: int, form: str) -> None:
    """Scenarios 57 and 58; beyond the reference, the JSON formats have their result."""
    with ScriptedServer([Reply("some words", stall_after=2)]) as server:
        running = bench.start(server, form=form)
        until(lambda: server.received)
        running.send(number)
        finished = running.finish()
        assert server.wait_for_drop()
    assert (130, "Operation cancelled.\n") == (finished.code, finished.stderr)
    if form == "text":
        assert "" == finished.stdout
    else:
        assert ("cancelled", True) == (finished.result["termination_reason"], finished.result["is_error"])
        assert "structured_result" not in finished.result


def test_a_signal_while_a_tool_runs_kills_its_processes(bench: Bench) -> None:
    command = "touch started; sleep 60.25"
    with ScriptedServer([Reply(Call("run_shell_command", {"command": command}, "slow"))]) as server:
        running = bench.start(server, "-y", form="stream-json")
        until((bench.workspace / "started").exists)
        running.send(signal.SIGINT)
        finished = running.finish()
    assert (130, ["slow"]) == (finished.code, list(finished.results()))
    assert not alive("sleep 60.25")


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_nothing_outlives_a_run_that_is_killed(bench: Bench, sandbox: str) -> None:
    command = "touch started; setsid sleep 61.25 & sleep 61.25"
    with ScriptedServer([Reply(Call("run_shell_command", {"command": command}, "slow"))]) as server:
        running = bench.start(server, "-y", "--sandbox", sandbox, form="stream-json")
        until((bench.workspace / "started").exists)
        until(lambda: alive("sleep 61.25"))
        running.send(signal.SIGKILL)
        running.finish()
    until(lambda: not alive("sleep 61.25"))


def test_the_first_cause_wins(bench: Bench) -> None:
    """Scenario 59: a signal and then, while the run winds down, the end of its time."""
    with ScriptedServer(
        [Reply(Call("run_shell_command", {"command": "trap '' TERM INT; touch up; sleep 9"}))]
    ) as server:
        running = bench.start(server, "-y", "--max-wall-time", "2", form="stream-json")
        until((bench.workspace / "up").exists)
        for _ in range(3):
            running.send(signal.SIGINT)
        finished = running.finish()
    assert (130, "cancelled") == (finished.code, finished.result["termination_reason"])


def test_a_reader_that_goes_away_is_no_crash_and_the_transcript_is_whole(bench: Bench) -> None:
    """Scenario 61."""
    bench.write("a.txt", "alpha")
    ours, theirs = os.pipe()
    os.close(ours)
    with ScriptedServer([Reply(Call("read_file", {"file_path": "a.txt"})), Reply(so())]) as server:
        finished = bench.start(server, form="stream-json", stdout=theirs).finish()
    os.close(theirs)
    assert (0, "") == (finished.code, finished.stderr)
    records = [json.loads(line) for line in bench.transcripts[0].read_text().splitlines()]
    assert "tool_result" == records[-1]["type"]


def test_minus_one_is_no_limit_and_nothing_is_no_number(bench: Bench) -> None:
    bad = [Reply(Call("structured_output", {"summary": [index]})) for index in range(12)]
    free = ["--max-structured-retries", "-1", "--max-session-turns", "-1", "--max-tool-calls", "-1"]
    assert 0 == bench.run([*bad, Reply(so())], *free).code
    assert 56 == bench.run(bad, "--max-structured-retries", "10").code
    for flag in ("--max-wall-time", "--max-tool-calls", "--max-session-turns", "--max-structured-retries"):
        finished = bench.run([], flag, "")
        assert (52, []) == (finished.code, bench.received)
        assert f"{flag}: ''" in finished.result["error"]["message"]


def test_an_answer_that_a_full_disk_does_not_take_is_told(bench: Bench) -> None:
    for form in ("text", "json", "stream-json"):
        with ScriptedServer([Reply(so())]) as server, open("/dev/full", "wb") as full:
            finished = bench.start(server, form=form, stdout=full.fileno()).finish()
        assert 74 == finished.code
        assert "Traceback" not in finished.stderr
        assert "The answer could not be written: No space left on device." in finished.stderr


@pytest.mark.parametrize("ending", ["signal", "time"])
def test_a_search_that_runs_away_does_not_hold_the_run(bench: Bench, ending: str) -> None:
    bench.env["PATH"] = "/nowhere"  # no ripgrep
    bench.write("a.txt", "a" * 60 + "!")
    with ScriptedServer([Reply(Call("grep_search", {"pattern": "(a|aa|a)+$"}, "slow"))]) as server:
        running = bench.start(server, "--max-wall-time", "3" if ending == "time" else "1h", form="stream-json")
        running.wait_for('"slow"')
        if ending == "signal":
            running.send(signal.SIGTERM)
        finished = running.finish()
    code, reason = (55, "wall_time") if ending == "time" else (130, "cancelled")
    assert (code, reason, ["slow"]) == (finished.code, finished.result["termination_reason"], list(finished.results()))


def test_a_second_signal_ends_the_process_at_once_with_its_result(bench: Bench) -> None:
    stubborn = "trap '' TERM INT; touch up; while :; do sleep 0.1; done"
    with ScriptedServer([Reply(Call("run_shell_command", {"command": stubborn}, "slow"))]) as server:
        running = bench.start(server, "-y", form="stream-json")
        until((bench.workspace / "up").exists)
        running.send(signal.SIGINT)
        running.send(signal.SIGTERM)
        finished = running.finish()
    assert (130, "cancelled", ["slow"]) == (
        finished.code,
        finished.result["termination_reason"],
        list(finished.results()),
    )


def test_signals_faults_and_failing_hooks_leave_nothing_behind() -> None:
    """A few runs of the chaos program; `python -m tests.agent.chaos 1000` makes more."""
    assert 8 == len(chaos.run(8, first_seed=100))
