"""The command as a whole: verbs, help, exit codes, and how errors look."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

import dovetail as dt
from dovetail import cli


def test_help_lists_the_verbs_and_each_verb_has_its_help() -> None:
    result = CliRunner().invoke(cli.main, ["--help"])
    assert result.exit_code == 0
    for verb in cli.main.list_commands(click.Context(cli.main)):
        assert verb in result.output
        assert CliRunner().invoke(cli.main, [verb, "--help"]).exit_code == 0


def test_an_unknown_verb_is_a_usage_error() -> None:
    assert CliRunner().invoke(cli.main, ["sing"]).exit_code == 2


def test_the_version_is_printed() -> None:
    assert f"dovetail {dt.__version__}\n" == CliRunner().invoke(cli.main, ["--version"], prog_name="dovetail").output


def test_our_errors_are_printed_as_they_tell_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def failing() -> None:
        raise dt.SchemaError("it is wrong", "/here", "mend it")

    monkeypatch.setattr(cli._Verbs, "get_command", lambda *_: failing)
    result = CliRunner().invoke(cli.main, ["demo"])
    assert (1, "SchemaError: it is wrong\n  at   /here\n  fix  mend it\n") == (result.exit_code, result.stderr)


def start(*arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """A verb on a terminal of its own."""
    ours, theirs = pty.openpty()
    # A test run in the background may have been told to ignore Ctrl-C, which its children inherit.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heed}; from dovetail.cli import main; main(prog_name='dovetail')"
    environment = os.environ | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    return process, ours


def read_all(descriptor: int) -> bytes:
    data = b""
    try:
        while chunk := os.read(descriptor, 4096):
            data += chunk
    except OSError:  # a terminal whose program ended
        pass
    os.close(descriptor)
    return data


def test_a_terminal_sees_colors() -> None:
    process, screen = start("demo", "--fast")
    assert b"\x1b[" in read_all(screen)
    assert process.wait(timeout=60) == 0


def test_ctrl_c_ends_the_demo_quietly() -> None:
    process, screen = start("demo")
    seen = os.read(screen, 4096)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    seen += read_all(screen)
    assert process.wait(timeout=60) == 130
    assert b"Traceback" not in seen
