"""Runs under random signals, provider faults, dying servers, full disks, slow input and failing hooks.

`python -m tests.agent.chaos 1000` makes a thousand, and tells how long after its limit or its first signal each ended,
and for how much of that time it was ready and waited for a processor: what a busy machine adds.
After each run: an exit code that is documented, exactly one result that agrees with it, one result for each call, an
answer that fits, a transcript of whole lines without the payload, and no process left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.agent.exit_reasons import KINDS
from tests.agent.cli.conftest import S1, Bench
from tests.agent.servers import Call, Received, Reply, ScriptedServer
from tests.agent.warm import Finished, Warm, waited_s

SECRET = "chaos-payload-value"
CODES = {kind.exit_code for kind in KINDS.values()}
_MARK = "DOVETAIL_CHAOS_RUN"
# What a signal leaves behind while the command line is still being read.
_TOO_EARLY = {(130, ""), (1, "Aborted!")}


def script(chance: random.Random) -> Any:
    """A model that works, errs and breaks at random."""
    lock = threading.Lock()

    def reply(request: Received) -> Reply:
        with lock:
            return _reply(chance, request.serial)

    return reply


def _reply(chance: random.Random, serial: int) -> Reply:
    faults: list[dict[str, Any]] = [
        *[{}] * 12,
        {"cut_after": chance.randrange(5)},
        {"garbage_after": chance.randrange(5)},
        {"error_after": chance.randrange(5)},
        {"stall_after": chance.randrange(4), "stall_s": 5.0},
        {"status": chance.choice([400, 401, 429, 500, 503]), "headers": {"retry-after": "0"}},
        {"pace_s": 0.05},
        {"finish": "length"},
    ]
    calls = [
        Call("structured_output", {"summary": SECRET}),
        Call("structured_output", {"summary": [SECRET]}),
        Call("structured_output", f'{{"summary": "{SECRET}'),
        Call("read_file", {"file_path": "a.txt", "offset": serial}),
        Call("glob", {"pattern": f"*{serial}"}),
        Call("run_shell_command", {"command": f"sleep {chance.choice(['0', '0.1', '20'])}; : {'x' * serial}"}),
        Call("run_shell_command", {"command": f"sleep 20 & : {'y' * serial}"}),
        Call("agent", {"description": "t", "prompt": "look", "run_in_background": chance.random() < 0.5}),
        Call("unknown", {}),
    ]
    blocks: list[Any] = chance.sample(calls, chance.choice([0, 1, 1, 1, 2, 3]))
    if chance.random() < 0.3:
        blocks.append(calls[0])
    return Reply(*(["words"] if chance.random() < 0.5 else []), *blocks, **chance.choice(faults))


def hooks(chance: random.Random) -> dict[str, Any]:
    """Hooks that mostly behave."""
    commands = ["true"] * 4 + [
        "exit 1",
        "exit 2",
        "sleep 20",
        "kill -9 $$",
        "echo '{\"continue\": false}'",
        "yes | head -c 99999",
    ]
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    return {
        event: [{"matcher": "*", "hooks": [{"type": "command", "command": chance.choice(commands), "timeout": 300}]}]
        for event in events
    }


@dataclass
class Ended:
    """How a run ended, and how many seconds after the moment at which it had to.

    `cpu_s` is the processor time of all of the run, `waited_s` how long it waited for a processor after that moment.
    """

    seed: int
    reason: str
    late_s: float
    cpu_s: float
    waited_s: float


def servers(chance: random.Random) -> dict[str, Any]:
    """Tool servers: mostly none, else one that works, fails, hangs or dies."""
    script = str(Path(__file__).with_name("mcp_server.py"))
    commands = [
        [sys.executable, script, "stdio"],
        ["sh", "-c", "exit 1"],
        ["sh", "-c", "trap '' TERM; sleep 600 & sleep 600"],
        ["sh", "-c", "sleep 0.2; kill -9 $$"],
    ]
    command, *arguments = chance.choice(commands)
    return {"odd": {"command": command, "args": arguments}} if chance.random() < 0.3 else {}


def feed(chance: random.Random) -> tuple[int, Callable[[], None]]:
    """Standard input that comes slowly and may never end; its descriptor, and how to let it go."""
    reading, writing = os.pipe()
    pieces, ends, pause = chance.randrange(4), chance.random() < 0.7, chance.random() * 0.5
    over = threading.Event()

    def write() -> None:
        for _ in range(pieces):
            with contextlib.suppress(OSError):
                os.write(writing, b"data @.env ")
            over.wait(pause)
        if not ends:
            over.wait()
        os.close(writing)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()

    def close() -> None:
        os.close(reading)
        over.set()
        thread.join()

    return reading, close


def one(warm: Warm, seed: int) -> Ended:
    """One run; how it ended, or AssertionError."""
    chance = random.Random(seed)
    form = chance.choice(["text", "json", "stream-json"])
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(ScriptedServer(script(chance)))
        bench = Bench(warm, Path(folder))
        bench.env[_MARK] = str(seed)
        bench.write("a.txt")
        bench.write(".env", "KEY=1")
        bench.settings(hooks=hooks(chance), mcpServers=servers(chance))
        limit_s = chance.choice([1, 2, 4])
        flags = ["-y", "--max-session-turns", "6", "--max-wall-time", str(limit_s), "--max-retries", "2"]
        flags += ["--include-partial-messages"] if form == "stream-json" and chance.random() < 0.5 else []
        streams: dict[str, Any] = {}
        if chance.random() < 0.2:
            streams["stdin_descriptor"], close = feed(chance)
            stack.callback(close)
        is_full = chance.random() < 0.1
        if is_full:
            streams["stdout"] = stack.enter_context(open("/dev/full", "wb")).fileno()
        due = time.monotonic() + limit_s
        running = bench.start(server, *flags, form=form, **streams)
        waited: list[float] = []
        at_limit = threading.Timer(due - time.monotonic(), lambda: waited.append(waited_s(running.pid)))
        at_limit.start()
        stack.callback(at_limit.cancel)
        if chance.random() < 0.1:
            time.sleep(chance.random() * 1.5)
            server.die()
        if chance.random() < 0.5:
            time.sleep(chance.random() * 1.5)
            if time.monotonic() < due:
                due = time.monotonic()
                waited.insert(0, waited_s(running.pid))
            for _ in range(chance.choice([1, 1, 2])):
                running.send(chance.choice([signal.SIGINT, signal.SIGTERM]))
        finished = running.finish()
        late_s = time.monotonic() - due
        try:
            reason = check_full(finished, seed) if is_full else check(bench, finished, form, seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{finished}") from error
        return Ended(seed, reason, late_s, running.cpu_s, max(0.0, running.waited_s - (waited or [0.0])[0]))


def check_full(finished: Finished, seed: int) -> str:
    """What must hold after a run whose standard output is a full disk."""
    assert finished.code in CODES | {1, -signal.SIGINT, -signal.SIGTERM}
    assert finished.code != 0
    assert "Traceback" not in finished.stderr
    assert [] == leftovers(seed)
    return f"full disk, exit {finished.code}"


def check(bench: Bench, finished: Finished, form: str, seed: int) -> str:
    """What must hold after any run."""
    if finished.code in (-signal.SIGINT, -signal.SIGTERM) or (finished.code, finished.stderr.strip()) in _TOO_EARLY:
        return _killed(finished, form)
    assert finished.code in CODES, finished.code
    assert "Traceback" not in finished.stderr
    if form == "text":
        assert (finished.code == 0) == bool(finished.stdout)
        payload = json.loads(finished.stdout) if finished.stdout else None
        reason = f"exit {finished.code}"
    else:
        result = finished.result
        assert finished.code == KINDS[result["termination_reason"]].exit_code
        assert (finished.code == 0) == ("structured_result" in result)
        payload = result.get("structured_result")
        assert sorted(use["id"] for use in finished.uses()) == sorted(finished.results())
        reason = result["termination_reason"]
        assert reason != "internal_error"
    assert payload in (None, {"summary": SECRET})
    assert S1["required"] == ["summary"]
    for path in bench.transcripts:
        text = path.read_text()
        assert SECRET not in text
        for line in text.splitlines():
            json.loads(line)
    assert [] == leftovers(seed)
    return reason


def _killed(finished: Finished, form: str) -> str:
    """A signal before the command has begun or after it has ended: there is nothing, or everything."""
    if not finished.stdout:
        return "killed before it began"
    assert form == "text" or finished.result
    return "killed after it had ended"


def leftovers(seed: int, limit_s: float = 3.0) -> list[str]:
    """Processes of a run that outlive it."""
    end = time.monotonic() + limit_s
    while True:
        found = _marked(f"{_MARK}={seed}")
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def _marked(mark: str) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found.append(Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def run(count: int, first_seed: int = 0, workers: int = 3) -> list[Ended]:
    """So many runs."""
    warm = Warm()
    try:
        warm.run("--version", env={"PATH": os.environ["PATH"]}, cwd=Path("/"))  # its imports are no part of any run
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda seed: one(warm, seed), range(first_seed, first_seed + count)))
    finally:
        warm.close()


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    began = time.monotonic()
    endings = run(size, *map(int, sys.argv[2:4]))
    for reason, times in Counter(ended.reason for ended in endings).most_common():
        print(f"{times:6} {reason}")
    share = sum(ended.late_s <= 2 for ended in endings) / size
    alone = sum(ended.late_s - ended.waited_s <= 2 for ended in endings) / size
    cpu_s = sum(ended.cpu_s for ended in endings) / size
    print(f"{size} runs in {time.monotonic() - began:.0f} s, {cpu_s:.2f} s of processor each")
    print(f"{share:.1%} ended within 2 s of their limit or signal, {alone:.1%} but for that waiting; the latest:")
    for ended in sorted(endings, key=lambda ended: -ended.late_s)[:5]:
        print(f"{ended.late_s:6.2f} s, of which {ended.waited_s:.2f} s waiting  seed {ended.seed}  {ended.reason}")
