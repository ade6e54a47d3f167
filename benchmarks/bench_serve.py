"""How does the server bear many streams at once, and readers who die in the middle?

    python benchmarks/bench_serve.py                              200 streams for a minute, half of the readers killed
    python benchmarks/bench_serve.py --streams 1000 --seconds 30  another size
    python benchmarks/bench_serve.py --model smollm2 --streams 16 a real model, of the extra smol
    python benchmarks/bench_serve.py --quick                      a few streams for a moment

A server with the embedded speaker, or the model that is named, and some processes full of readers. Each reader asks for
an answer that only it can get, by a regular expression of its own, so that a mixed stream is seen at once. In the
middle of the run half of the processes are killed with SIGKILL. Reported are errors, mixed streams, the pieces per
second before and after, the memory of the server over time, and the server's own time for a token, out of its /metrics.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

PROCESSES = 4
LENGTH = 40  # digits in an answer


class Reading(NamedTuple):
    """What the server looked like at one moment."""

    at_s: float
    resident_kb: int
    running: float
    tokens: float


def main() -> None:
    """Run the server and its readers, and report."""
    arguments = _arguments()
    if arguments.reader is not None:
        print(json.dumps(asyncio.run(_read_all(arguments))))
        return
    report = _run(arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report, indent=2))
    _print(report)
    sys.exit(0 if report["passed"] else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model", default="speaker")
    parser.add_argument("--pace", type=float, default=0.1, help="seconds that the speaker takes for a token")
    parser.add_argument("--quick", action="store_true", help="12 streams for 3 seconds")
    parser.add_argument("--json", metavar="FILE", help="write the report there, too")
    parser.add_argument("--reader", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.streams, arguments.seconds, arguments.pace = 12, 3.0, 0.01
    return arguments


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    server = _Server(arguments.model, arguments.pace)
    each = max(1, arguments.streams // PROCESSES)
    command = [sys.executable, __file__, "--url", server.url, "--streams", str(each)]
    readers = [
        subprocess.Popen([*command, "--reader", str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    while server.look(0).running < each * PROCESSES and all(reader.poll() is None for reader in readers):
        time.sleep(0.05)
    readings: list[Reading] = []
    started = time.monotonic()
    killed = False
    while (now := time.monotonic() - started) < arguments.seconds:
        readings.append(server.look(now))
        if not killed and now > arguments.seconds / 2:
            for reader in readers[::2]:
                reader.send_signal(signal.SIGKILL)
            killed = True
        time.sleep(min(1.0, arguments.seconds / 20))
    for reader in readers[1::2]:
        reader.send_signal(signal.SIGTERM)  # ask no more
    told = [reader.communicate()[0] for reader in readers]
    results = [json.loads(text) for text in told[1::2]]
    time.sleep(1)
    last = server.look(time.monotonic() - started)
    own = server.own_time_us()
    clean = server.stop()
    return _report(arguments, readings, last, results, own, clean, each)


class _Server:
    """The server in a process of its own."""

    def __init__(self, model: str, pace_s: float) -> None:
        code = "from dovetail.cli import main; main()"
        options = ["serve", "--model", model, "--port", "0", "--quiet", "--pace", str(pace_s), "--max-requests", "1000"]
        self._process = subprocess.Popen([sys.executable, "-c", code, *options], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://[\d.]+:\d+", line)
        if found is None:
            raise SystemExit(f"the server did not start: {line}{self._process.stderr.read()}")
        self.url = found.group()
        self.metrics()  # waits until it answers

    def metrics(self) -> dict[str, float]:
        """Its /metrics by name and labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name[:1] != "#"}

    def look(self, at_s: float) -> Reading:
        """How it is doing."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        metrics = self.metrics()
        tokens = metrics.get("dovetail_token_seconds_count", 0.0)
        resident = int(found.group(1)) if found else 0
        return Reading(at_s, resident, metrics.get("dovetail_requests_running", 0.0), tokens)

    def own_time_us(self) -> dict[str, float]:
        """Percentiles of its own time for a token: the bounds of the buckets in which they lie."""
        name = 'dovetail_token_seconds_bucket{le="'
        buckets = [(key[len(name) : -2], value) for key, value in self.metrics().items() if key.startswith(name)]
        total = buckets[-1][1]
        return {
            f"p{share}": next(float(bound) * 1e6 for bound, count in buckets if count >= total * share / 100)
            for share in (50, 90, 99)
        }

    def stop(self) -> bool:
        """End it as a supervisor would; whether it went in peace."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30) in (0, -signal.SIGTERM, 130, 143)


def _report(
    arguments: argparse.Namespace,
    readings: list[Reading],
    last: Reading,
    results: list[dict[str, Any]],
    own: dict[str, float],
    clean: bool,
    each: int,
) -> dict[str, Any]:
    half = len(readings) // 2
    # What comes first is made once: vocabularies, automata, threads.
    early = [one.resident_kb for one in readings[half // 2 : half]]
    late = [one.resident_kb for one in readings[half + half // 2 :]]
    errors = [error for result in results for error in result["errors"]]
    mixed = sum(result["mixed"] for result in results)
    answers = sum(result["answers"] for result in results)
    before, after = _rate(readings[half // 2 : half]), _rate(readings[half + half // 2 :])
    full = max(one.running for one in readings)
    report = {
        "streams": each * PROCESSES,
        "seconds": arguments.seconds,
        "answers_of_survivors": answers,
        "errors": errors[:10],
        "mixed": mixed,
        "most_running": full,
        "running_after_kill": readings[-1].running,
        "running_at_end": last.running,
        "tokens_per_s": {"all": before, "half": after},
        "resident_mb": {"early": round(_mean(early) / 1024, 1), "late": round(_mean(late) / 1024, 1)},
        "own_time_us": own,
        "stopped_cleanly": clean,
    }
    report["passed"] = not errors and not mixed and answers > 0 and last.running == 0 and clean
    return report


def _rate(readings: list[Reading]) -> float:
    if len(readings) < 2:
        return 0.0
    return round((readings[-1].tokens - readings[0].tokens) / (readings[-1].at_s - readings[0].at_s), 1)


def _mean(values: list[int]) -> float:
    return sum(values) / max(1, len(values))


async def _read_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """The readers of one process, each asking again and again until a signal comes."""
    result: dict[str, Any] = {"answers": 0, "mixed": 0, "errors": []}
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, enough.set)
    host, port = arguments.url.removeprefix("http://").split(":")

    async def reader(name: str) -> None:
        while not enough.is_set():
            try:
                text = await asyncio.wait_for(_ask(host, int(port), name), 120)
            except Exception as error:
                result["errors"].append(f"{name}: {type(error).__name__} {error}")
                return
            if re.fullmatch(rf"{name}:[0-9]{{{LENGTH}}}", text):
                result["answers"] += 1
            else:
                result["mixed"] += 1

    await asyncio.gather(*(reader(f"r{arguments.reader}s{number}") for number in range(arguments.streams)))
    return result


async def _ask(host: str, port: int, name: str) -> str:
    """The content of one streamed answer, read with as little as possible between us and the socket."""
    request = {
        "messages": [{"role": "user", "content": f"Who am I? {name}"}],
        "regex": f"{name}:[0-9]{{{LENGTH}}}",
        "reasoning_effort": "none",
        "stream": True,
    }
    body = json.dumps(request).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", f"Host: {host}", "Connection: close", f"Content-Length: {len(body)}"]
    source, sink = await asyncio.open_connection(host, port)
    try:
        sink.write("\r\n".join([*lines, "", ""]).encode() + body)
        status = await source.readline()
        if b" 200 " not in status:
            raise RuntimeError(status.decode("latin-1").strip() + (await source.read(1000)).decode("latin-1"))
        pieces, done = [], False
        while line := await source.readline():
            if line.startswith(b"data: [DONE]"):
                done = True
            elif line.startswith(b"data: "):
                pieces += [choice["delta"].get("content") or "" for choice in json.loads(line[6:])["choices"]]
        if not done:
            raise RuntimeError("the stream broke off")
        return "".join(pieces)
    finally:
        sink.close()


def _print(report: dict[str, Any]) -> None:
    memory, rate, own = report["resident_mb"], report["tokens_per_s"], report["own_time_us"]
    print(f"{report['streams']} streams for {report['seconds']:g} s on {os.cpu_count()} cores")
    print(f"answers of the readers that lived   {report['answers_of_survivors']}")
    print(f"errors                              {len(report['errors'])} {report['errors'][:1] or ''}")
    print(f"mixed streams                       {report['mixed']}")
    running = [report[moment] for moment in ("most_running", "running_after_kill", "running_at_end")]
    print(f"running: most, after kill, at end   {', '.join(f'{count:g}' for count in running)}")
    print(f"pieces per second: all, half        {rate['all']:g}, {rate['half']:g}")
    print(f"memory of the server, early, late   {memory['early']:g} MB, {memory['late']:g} MB")
    print(f"own time per token, p50, p90, p99   {own['p50']:.0f} us, {own['p90']:.0f} us, {own['p99']:.0f} us")
    print(f"stopped cleanly                     {report['stopped_cleanly']}")
    told = "no error, no mixed stream, nobody left behind, although half of the readers were killed"
    print(f"{'PASS' if report['passed'] else 'FAIL'}  {told}")


if __name__ == "__main__":
    main()
