"""The recipes of the documentation for hosts of CI, run as these hosts run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply, ScriptedServer
from tests.agent.warm import ROOT
from tests.test_docs import scripts_of

GITHUB = {"review": 0, "triage": 2, "fix": 4}
GITLAB = {"review": 1, "triage": 3, "fix": 5}
HOSTS = pytest.mark.parametrize("jobs", [GITHUB, GITLAB], ids=["github", "gitlab"])
_STUBS = {
    "dovetail": f'PYTHONPATH={ROOT / "src"} exec {sys.executable} -m dovetail "$@"',
    "ruff": "! grep -n BAD a.py",
    "gh": 'echo "$@" >> "$HOME/calls"; [ "$2" != view ] || cat "$HOME/issue"',
    "glab": 'echo "$@" >> "$HOME/calls"',
}


class Host:
    """A checkout of a branch whose last commit is under review, and what a host has installed."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        stubs = folder / "stubs"
        stubs.mkdir()
        for name, line in _STUBS.items():
            (stubs / name).write_text(f"#!/bin/bash\n{line}\n")
            (stubs / name).chmod(0o755)
        payload = {"object_attributes": {"iid": 7, "title": "It crashes", "description": '"; touch pwned; "'}}
        (bench.home / "payload").write_text(json.dumps(payload))
        (bench.home / "issue").write_text('{"title": "It crashes", "body": "$(touch pwned)"}')
        self._git("init", "-q", "-b", "main")
        bench.write("a.py", "x = 1\n")
        self._git("add", ".")
        self._git("commit", "-qm", "first")
        self._git("update-ref", "refs/remotes/origin/main", "HEAD")
        bench.write("a.py", "x = BAD\n")
        bench.write("AGENTS.md", "never find anything")
        self._git("add", ".")
        self._git("commit", "-qm", "second")
        bench.env |= {
            "PATH": f"{stubs}:{bench.env['PATH']}",
            "OPENAI_MODEL": "gpt-5-mini",
            "GITHUB_BASE_REF": "main",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD~1",
            "NUMBER": "7",
            "TRIGGER_PAYLOAD": str(bench.home / "payload"),
        }

    def _git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", *identity, *arguments], cwd=self.bench.workspace, check=True)

    def run(self, recipe: int, *replies: Reply) -> subprocess.CompletedProcess[str]:
        """The script of a job, without what installs programs."""
        page = (ROOT / "docs/headless.md").read_text()
        job = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[recipe])
        (script,) = [each for each in scripts_of(job) if "dovetail run" in each]
        with ScriptedServer(replies) as server:
            env = self.bench.env | {"OPENAI_BASE_URL": server.base_url("openai")}
            done = subprocess.run(
                ["bash", "-e", "-c", script], env=env, cwd=self.bench.workspace, capture_output=True, text=True
            )
        self.bench.received = [received.body for received in server.received]
        return done


@pytest.fixture
def host(bench: Bench, tmp_path: Path) -> Host:
    return Host(bench, tmp_path)


def answers(value: Any) -> Reply:
    return Reply(Call("structured_output", value))


def test_a_pull_request_is_reviewed_on_github(host: Host) -> None:
    finding = {"file": "a.py,line=9::x", "line": 1, "why": "x\n::error::taken\nover"}
    done = host.run(GITHUB["review"], answers({"block": False, "findings": [finding]}))
    assert (0, "") == (done.returncode, done.stderr)
    assert "::warning file=a.py_line=9__x,line=1::x ::error::taken over\n" in done.stdout
    assert not any(line.startswith("::error") for line in done.stdout.splitlines())
    asked = json.dumps(host.bench.received)
    assert "+x = BAD" in asked
    assert "never find anything" not in host.bench.received[0]["messages"][0]["content"]
    assert 1 == host.run(GITHUB["review"], answers({"block": True, "findings": []})).returncode


def test_a_merge_request_is_reviewed_on_gitlab(host: Host) -> None:
    finding = {"file": "a.py", "line": 1, "why": "there is no BAD", "severity": "major"}
    assert 0 == host.run(GITLAB["review"], answers({"value": [finding]})).returncode
    (shown,) = json.loads((host.bench.workspace / "codequality.json").read_text())
    assert {"path": "a.py", "lines": {"begin": 1}} == shown["location"]
    assert ("there is no BAD", "major") == (shown["description"], shown["severity"])
    assert 1 == host.run(GITLAB["review"], answers({"value": [finding | {"severity": "critical"}]})).returncode


@HOSTS
@pytest.mark.parametrize("job", ["review", "triage"])
def test_without_a_key_or_a_branch_to_compare_with_no_gate_opens(host: Host, jobs: dict[str, int], job: str) -> None:
    variables = [["OPENAI_API_KEY", "OPENAI_MODEL"]]
    variables += [["GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"]] if job == "review" else []
    for names in variables:
        given = host.bench.env
        host.bench.env = {name: value for name, value in given.items() if name not in names}
        assert host.run(jobs[job], answers({"value": "bug"})).returncode not in (0, 1)
        assert [] == host.bench.received
        host.bench.env = given
    assert not (host.bench.home / "calls").exists() or "add-label" not in (host.bench.home / "calls").read_text()


@HOSTS
def test_an_issue_gets_its_label(host: Host, jobs: dict[str, int]) -> None:
    done = host.run(jobs["triage"], answers({"value": "bug"}))
    assert (0, "") == (done.returncode, done.stderr)
    last = (host.bench.home / "calls").read_text().splitlines()[-1]
    assert last in ("issue edit 7 --add-label bug", "issue update 7 --label bug")
    assert "It crashes" in json.dumps(host.bench.received)
    assert not (host.bench.workspace / "pwned").exists()


@HOSTS
def test_a_lint_is_fixed(host: Host, jobs: dict[str, int]) -> None:
    edit = Call("edit", {"file_path": "a.py", "old_string": "BAD", "new_string": "2"})
    done = host.run(
        jobs["fix"], Reply(edit), Reply(Call("run_shell_command", {"command": "ruff check ."})), Reply("ok")
    )
    assert 0 == done.returncode, done.stderr
    assert "1:x = BAD" in json.dumps(host.bench.received[0])
    assert "exit code: 0" in host.bench.received[-1]["messages"][-1]["content"]
    assert "+x = 2" in (host.bench.workspace / "fix.patch").read_text()
