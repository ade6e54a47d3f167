"""What stops a run before it begins, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cli.conftest import S1, Bench
from tests.agent.servers import Call, Reply
from tests.agent.warm import ROOT

GOOD = Reply(Call("structured_output", {"summary": "fine"}))


def test_without_the_flag_there_is_no_terminal_tool(bench: Bench) -> None:
    """Scenario 1."""
    finished = bench.run([Reply("prose")], schema=None)
    assert (0, "prose") == (finished.code, finished.result["result"])
    assert "structured_output" not in finished.messages[0]["tools"]


def test_the_schema_goes_to_the_model_unchanged(bench: Bench) -> None:
    """Scenario 2 and 21."""
    finished = bench.run([GOOD])
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in bench.received[0]["tools"]}
    assert (0, S1) == (finished.code, tools["structured_output"])


def test_schemas_are_read_from_files_in_the_launch_directory_and_the_home(bench: Bench) -> None:
    """Scenarios 3, 4 and 25: the launch directory counts, also where the run works elsewhere."""
    bench.write("s.json", '{"type": "object"}')
    (bench.home / "s.json").write_text('{"type": "object"}')
    bench.write("elsewhere/file")
    for argument in ("@s.json", "@~/s.json"):
        flags = ("--json-schema", argument, "--workspace", "elsewhere")
        finished = bench.run([Reply(Call("structured_output", {"a": 1}))], *flags, schema=None)
        assert (0, {"a": 1}) == (finished.code, finished.result["structured_result"])
        assert str(bench.workspace / "elsewhere") == finished.messages[0]["cwd"]


BAD_SCHEMAS = [
    # scenarios, the value of --json-schema, words on stderr
    ("5", "   ", "cannot be empty"),
    ("6", "{not json}", "--json-schema is not valid JSON: "),
    ("8", "[]", "must be a JSON object"),
    ("8", '"x"', "must be a JSON object"),
    ("8", "42", "must be a JSON object"),
    ("8", "true", "must be a JSON object"),
    ("8", "null", "must be a JSON object"),
    ("9", "@/no/such", "could not read"),
    ("10", "@.", "must be a regular file"),
    ("10", "@pipe", "must be a regular file"),
    ("7", "@secret", "is not valid JSON"),
    ("11", "@huge", "Refusing to read"),
    ("12", '{"type": "array"}', "root must accept object-typed values"),
    ("13", '{"type": "object", "propertees": {}}', "is not a valid JSON Schema"),
    ("14", '{"properties": {"foo": {"type": 42}}}', "is not a valid JSON Schema"),
    ("14", '{"type": 42}', "root must accept object-typed values"),
    ("15", '{"type": "object", "unevaluatedProperties": false}', "is not a valid JSON Schema"),
]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_bad_schema_ends_with_52_and_one_result(bench: Bench, form: str) -> None:
    """Scenarios 5 to 15; all of them in one home, since they are many and leave nothing behind."""
    os.mkfifo(bench.workspace / "pipe")
    bench.write("secret", "SECRET_TOKEN hello")
    bench.write("huge", "{}" + " " * ((4 << 20) - 1))
    started = [
        (
            words,
            bench.warm.start("run", "-p", "x", "--json-schema", raw, "-o", form, env=bench.env, cwd=bench.workspace),
        )
        for _, raw, words in BAD_SCHEMAS
    ]
    for words, running in started:
        finished = running.finish()
        assert 52 == finished.code
        told = finished.stderr if form == "text" else json.loads(finished.stderr)["error"]["message"]
        assert words in told
        assert "TOKEN" not in finished.stdout + finished.stderr
        if form == "text":
            assert "" == finished.stdout
        else:
            assert ("configuration", True) == (finished.result["termination_reason"], finished.result["is_error"])


def test_a_2020_12_schema_may_use_its_keywords(bench: Bench) -> None:
    """Scenario 15, the other half; and a file of exactly 4 MiB, scenario 11."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "unevaluatedProperties": False}
    assert 0 == bench.run([Reply(Call("structured_output", {}))], schema=schema).code
    bench.write("big", "{}" + " " * ((4 << 20) - 2))
    assert 0 == bench.run([GOOD], "--json-schema", "@big", schema=None).code


CONFLICTS: list[tuple[str, list[str], str]] = [
    # scenarios, flags, the beginning of stderr
    ("", ["-p", "x", "y"], "Cannot use both a positional prompt and the --prompt (-p) flag together"),
    ("", ["-p", "x", "-i", "y"], "Cannot use both --prompt (-p) and --prompt-interactive (-i) together"),
    ("", ["x", "-y", "--approval-mode", "auto"], "Cannot use both --yolo (-y) and --approval-mode together."),
    ("", ["x", "--include-partial-messages"], "--include-partial-messages requires --output-format stream-json"),
    ("18", ["x", "--json-schema", "{}", "--input-format", "stream-json"], "--input-format stream-json requires"),
    ("", ["x", "-c", "-r", "y"], "Cannot use both --continue and --resume together."),
    ("", ["x", "-c", "--session-id", "y"], "Cannot use --session-id with --continue or --resume."),
    ("", ["x", "--fork-session"], "--fork-session must be used with --resume or --continue."),
    ("", ["x", "--session-id", "y"], 'Invalid --session-id: "y". Must be a valid UUID'),
    ("16", ["--json-schema", "{}", "-i", "x"], "--json-schema cannot be used with --prompt-interactive (-i);"),
    (
        "17",
        ["x", "--json-schema", "{}", "--input-format", "stream-json", "-o", "stream-json"],
        '--json-schema cannot be used with --input-format stream-json; the "first structured_output call ends',
    ),
    ("19", ["x", "--json-schema", "{}", "--acp"], "--json-schema cannot be used with --acp;"),
    ("19", ["x", "--json-schema", "{}", "--experimental-acp"], "--json-schema cannot be used with --acp;"),
    ("", ["x", "--no-such-flag"], "Usage: dovetail run"),
    ("", ["--json-schema", "{}"], "No input provided via stdin."),
    ("", ["x", "--max-subagent-depth", "0"], "Usage: dovetail run"),
]


def test_flags_that_cannot_stand_together_end_with_1_and_the_usage(bench: Bench) -> None:
    """Scenarios 16 to 19 and the table of conflicts, the first rule first."""
    for _, flags, words in CONFLICTS:
        finished = bench.command(*flags)
        assert (1, "") == (finished.code, finished.stdout), flags
        assert finished.stderr.startswith(words), finished.stderr
        assert "Usage: dovetail run" in finished.stderr


def test_an_empty_schema_is_told_as_such_whatever_else_is_wrong(bench: Bench) -> None:
    """Scenario 22."""
    finished = bench.command("--json-schema", "", "-i", "x")
    assert 52 == finished.code
    assert "cannot be empty" in finished.stderr


def test_a_terminal_without_a_prompt_is_refused_and_a_pipe_is_read(bench: Bench) -> None:
    """Scenario 20."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from dovetail.cli import main; main(prog_name='dovetail')", "run"]
    environment = bench.env | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*command, "--json-schema", "{}"], stdin=theirs, capture_output=True, text=True, env=environment, check=False
    )
    os.close(ours)
    os.close(theirs)
    assert 1 == done.returncode
    assert done.stderr.startswith("--json-schema only applies to non-interactive mode;")
    finished = bench.run([GOOD], prompt="after it", stdin="the diff\n")
    assert 0 == finished.code
    assert "the diff\n\n\nafter it" == bench.received[0]["messages"][-1]["content"]


BUDGETS: list[tuple[list[str], str]] = [
    *((["--max-wall-time", text], "--max-wall-time: ") for text in ("0", "500ms", "abc", "100d", "-5", "3000000")),
    *((["--max-tool-calls", text], "--max-tool-calls: ") for text in ("-2", "1.5", "2000000", "x")),
    (["--max-session-turns", "many"], "--max-session-turns: "),
]


def test_the_number_of_parallel_tools_comes_from_the_environment(bench: Bench) -> None:
    bench.env["DOVETAIL_MAX_TOOL_CONCURRENCY"] = "several"
    finished = bench.command("-p", "x")
    assert 52 == finished.code
    assert "DOVETAIL_MAX_TOOL_CONCURRENCY" in finished.stderr


def test_a_budget_that_makes_no_sense_stops_the_run_at_start_up(bench: Bench) -> None:
    """Scenarios 23 and 24."""
    for flags, words in BUDGETS:
        finished = bench.command("-p", "x", *flags)
        assert (52, "") == (finished.code, finished.stdout)
        assert words in finished.stderr
    good = ("--max-wall-time", "1.5h", "--max-tool-calls", "-1")
    assert 0 == bench.run([GOOD], *good).code


def test_a_prompt_that_mentions_a_missing_file_ends_with_42(bench: Bench) -> None:
    """Scenario 85, and what mentions of files that are there do."""
    finished = bench.run([], prompt="read @./missing.txt")
    assert 42 == finished.code
    assert {"type": "FatalInputError", "code": 42} | json.loads(finished.stderr)["error"] == json.loads(
        finished.stderr
    )["error"]
    assert "input_error" == finished.result["termination_reason"]
    bench.write("notes.txt", "remember the milk")
    assert 0 == bench.run([GOOD], prompt="read @notes.txt, and ask @somebody").code
    assert "remember the milk" in bench.received[0]["messages"][-1]["content"]


def test_bytes_that_are_no_text_are_replaced(bench: Bench) -> None:
    assert 0 == bench.run([GOOD], prompt="a\udcffb").code
    assert "a?b" == bench.received[0]["messages"][-1]["content"]


def test_the_workspace_must_exist(bench: Bench) -> None:
    assert 52 == bench.command("-p", "x", "--workspace", "nowhere").code


def test_array_roots_are_wrapped_for_the_tool_and_unwrapped_in_the_output(bench: Bench) -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    finished = bench.run([Reply(Call("structured_output", {"value": [1, 2]}))], "--wrap-root", schema=schema)
    assert (0, "[1,2]", [1, 2]) == (finished.code, finished.result["result"], finished.result["structured_result"])


def test_the_recorded_schemas_are_decided_by_the_command_too(bench: Bench, conformance: Path) -> None:
    """Scenario 12: a sample through the whole command; tests/conformance/test_schema_roots.py has all of them."""
    lines = (conformance / "schema_root_cases.jsonl").read_text().splitlines()[::12]
    for case in map(json.loads, lines):
        raw = case["raw"] if case.get("raw") is not None else json.dumps(case["schema"])
        good = case["accepts"] and not case.get("accepted_but_impossible")
        finished = bench.command("-p", "x", "--json-schema", raw, "--provider", "speaker")
        assert (0 if good or case.get("rejected_but_possible") else 52) == finished.code, raw


@pytest.mark.parametrize("value", ["", " ", ","])
def test_a_flag_that_names_nothing_is_no_flag_left_out(bench: Bench, value: str) -> None:
    """A variable that is not set in a script must not lift a restriction, or send the prompt to somebody else."""
    lists = ("core-tools", "allowed-tools", "exclude-tools", "allowed-mcp-server-names")
    for flag in (*lists, *("workspace", "provider", "model", "base-url", "fallback-model", "add-dir")):
        if value == "," and flag not in lists:
            continue
        finished = bench.run([], f"--{flag}", value)
        assert (52, []) == (finished.code, bench.received)
        assert f"--{flag} names nothing" in finished.result["error"]["message"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9", "localhost:9/v1", "ftp://h/v1", "http://", "https:///v1", "http://[::1", "x"]
)
def test_an_address_that_is_none_is_not_tried(bench: Bench, address: str) -> None:
    for flags, variable in ((("--base-url", address), {}), ((), {"OPENAI_BASE_URL": address})):
        bench.env |= variable
        finished = bench.command("-p", "x", "--provider", "openai", "--model", "m", "-o", "json", *flags)
        assert (52, "configuration") == (finished.code, finished.result["termination_reason"])
        assert "is no address of a server" in finished.stderr
        assert "attempt 2" not in finished.stderr
