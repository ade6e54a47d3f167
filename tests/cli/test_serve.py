"""`dovetail serve` as a process: it starts, answers, and ends when it is told to."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

import dovetail
from dovetail.cli import main
from tests.models.engines.fake import Fake


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """A server, and its URL."""
    environment = {**os.environ, "PYTHONPATH": str(Path(dovetail.__file__).parent.parent)}
    code = "from dovetail.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *options]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"http://\S+?:\d+", process.stderr.readline())
    assert found
    return process, found.group()


def test_a_server_answers_and_ends_in_peace() -> None:
    process, url = start("--dialect", "harmony", "--api-key", "secret", "--seed", "3")
    with process, httpx2.Client(base_url=url, headers={"authorization": "Bearer secret"}, timeout=60) as client:
        assert "speaker" == client.get("/v1/models").json()["data"][0]["id"]
        body = {"messages": [{"role": "user", "content": "A secret wish?"}], "reasoning_effort": "high"}
        done = client.post("/v1/chat/completions", json=body)
        assert 200 == done.status_code
        assert 401 == client.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "POST /v1/chat/completions 200" in log
    assert "secret" not in log.lower()


def test_a_model_directory_is_served_in_the_dialect_of_its_template(tmp_path: Path) -> None:
    from dovetail.models import tiny

    process, url = start("--model", str(tiny.make(tmp_path / "little", "qwen_3")), "--name", "tim", "--quiet")
    with process, httpx2.Client(base_url=url, timeout=60) as client:
        body = {"model": "tim", "messages": [{"role": "user", "content": "?"}], "regex": "[a-c]{3}", "soft_limit": 9}
        done = client.post("/v1/chat/completions", json=body).json()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert re.fullmatch("[a-c]{3}", done["choices"][0]["message"]["content"])


def test_a_port_that_is_taken_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(main, ["serve", "--port", str(taken.getsockname()[1])])
    assert 1 == result.exit_code
    assert "choose another --host or --port" in result.output


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "dovetail" and "serving" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = CliRunner().invoke(main, ["serve"])
    assert 1 == result.exit_code
    assert 'pip install "dovetail-lm[serve]"' in result.output


def test_a_dialect_that_is_none_and_a_model_that_is_none_are_refused() -> None:
    assert "there is no dialect 'klingon'" in CliRunner().invoke(main, ["serve", "--dialect", "klingon"]).output
    missing = CliRunner().invoke(main, ["serve", "--model", "no/such/folder"])
    assert 1 == missing.exit_code


def test_engines_elsewhere_are_served_with_a_key_and_a_template_that_is_found() -> None:
    with Fake("vllm", "hermes").up() as fake:
        process, url = start("--engine", fake.engine, "--dialect", "hermes", "--engine-key", "secret", "--name", "far")
        with process, httpx2.Client(base_url=url, timeout=60) as client:
            body = {"messages": [{"role": "user", "content": "?"}], "regex": "[a-c]{3}", "reasoning_effort": "none"}
            done = client.post("/v1/chat/completions", json=body).json()
            assert "far" == client.get("/v1/models").json()["data"][0]["id"]
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
    assert re.fullmatch("[a-c]{3}", done["choices"][0]["message"]["content"])
    assert fake.keys == {"Bearer secret"}
    assert "secret" not in log


def test_engines_that_are_named_wrongly_are_told() -> None:
    for options, words in (
        (["--engine", "http://a:1", "--dialect", "hermes"], "vllm=http://HOST:PORT"),
        (["--engine", "vllm=http://a:1"], "give --model"),
    ):
        result = CliRunner().invoke(main, ["serve", *options])
        assert (result.exit_code, words in result.output) == (1, True)
