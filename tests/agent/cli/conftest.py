"""A bench for whole runs: a workspace, a home, a scripted model over HTTP, and the command line as a process."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agent.servers import Received, Reply, ScriptedServer
from tests.agent.warm import Finished, Running, Warm

S1 = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
Script = Sequence[Reply] | Callable[[Received], Reply]


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    warm = Warm()
    yield warm
    warm.close()


def until(happened: Callable[[], object], limit_s: float = 30.0) -> None:
    """Wait for something that is about to happen."""
    end = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def alive(words: str) -> bool:
    """Whether a process runs whose command line holds these words; inside a sandbox it has another number."""
    wanted = words.replace(" ", "\0").encode()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if wanted in file.read_bytes():
                return True
    return False


class Bench:
    """One test's world; `received` has the bodies of the requests of the last run."""

    def __init__(self, warm: Warm, folder: Path) -> None:
        self.warm = warm
        self.workspace = folder / "work"
        self.home = folder / "home"
        for path in (self.workspace, self.home):
            path.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "DOVETAIL_HOME": str(self.home / ".dovetail"),
            "OPENAI_API_KEY": "test-key",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        self.received: list[dict[str, Any]] = []

    def write(self, name: str, text: str = "some text\n") -> Path:
        """A file in the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def settings(self, **settings: Any) -> None:
        """The user's settings file."""
        folder = self.home / ".dovetail"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings))

    def project_settings(self, **settings: Any) -> None:
        """The settings file of the project."""
        self.write(".dovetail/settings.json", json.dumps(settings))

    def command(self, *arguments: str, stdin: str | None = None) -> Finished:
        """`dovetail run` without a scripted model."""
        return self.warm.run("run", *arguments, env=self.env, cwd=self.workspace, stdin=stdin)

    def run(
        self,
        script: Script,
        *flags: str,
        schema: Mapping[str, Any] | None = S1,
        form: str = "json",
        prompt: str = "do it",
        stdin: str | None = None,
    ) -> Finished:
        """A whole run against a script."""
        with ScriptedServer(script) as server:
            finished = self.start(server, *flags, schema=schema, form=form, prompt=prompt, stdin=stdin).finish()
        self.received = [received.body for received in server.received]
        return finished

    def start(
        self,
        server: ScriptedServer,
        *flags: str,
        schema: Mapping[str, Any] | None = S1,
        form: str = "json",
        prompt: str = "do it",
        stdin: str | None = None,
        stdout: int | None = None,
        stdin_descriptor: int | None = None,
    ) -> Running:
        """A run against a server, while it runs."""
        arguments = ["run", "--provider", "openai", "--model", "scripted", "--base-url", server.base_url("openai")]
        arguments += ["-p", prompt, "-o", form]
        arguments += ["--json-schema", json.dumps(schema)] if schema is not None else []
        streams = {"stdout": stdout, "stdin_descriptor": stdin_descriptor}
        return self.warm.start(*arguments, *flags, env=self.env, cwd=self.workspace, stdin=stdin, **streams)

    @property
    def transcripts(self) -> list[Path]:
        """The transcripts of all sessions."""
        return sorted((self.home / ".dovetail").rglob("*.jsonl"))

    def answers(self, request: int = -1) -> dict[str, str]:
        """What a request told the model about its calls, by id."""
        messages = self.received[request]["messages"]
        return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


@pytest.fixture
def bench(warm: Warm, tmp_path: Path) -> Bench:
    return Bench(warm, tmp_path)
