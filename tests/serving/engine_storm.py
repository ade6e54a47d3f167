"""Many streams at once through a server in front of engines, each with a text of its own, while a replica dies.

python -m tests.serving.engine_storm URL [--streams 200] [--seconds 60]: what came of them, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2

WORDS = 12


async def storm(url: str, streams: int, seconds: float) -> Counter[str]:
    """What came of each request: `done`, `broken` behind its beginning, or else what went wrong."""
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + seconds
    async with httpx2.AsyncClient(base_url=url, timeout=300, limits=httpx2.Limits(max_connections=None)) as client:

        async def go_on(index: int) -> None:
            number = index
            while time.monotonic() < until:
                outcomes[await _stream(client, number)] += 1
                number += streams

        await asyncio.gather(*map(go_on, range(streams)))
    return outcomes


def disturbed_storm(url: str, streams: int, seconds: float, disturb: Callable[[], None]) -> Counter[str]:
    """What came of a storm during which `disturb` runs in a thread."""
    trouble = threading.Thread(target=disturb)
    trouble.start()
    outcomes = asyncio.run(storm(url, streams, seconds))
    trouble.join()
    return outcomes


async def _stream(client: httpx2.AsyncClient, number: int) -> str:
    """One request, whose answer can be that of no other."""
    word = f"n{number}"
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": f"Say {word} again and again."}],
        "structured_outputs": {"regex": f"({word} ){{{WORDS}}}"},
        "reasoning_effort": "none",
        "max_tokens": 400,
        "stream": True,
    }
    text, error = "", ""
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                return f"status {response.status_code}"
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    event = json.loads(line[6:])
                    error = error or str(event.get("error") or "")
                    for choice in event.get("choices", ()):
                        text += choice["delta"].get("content") or ""
    except httpx2.TransportError as problem:
        return f"the server itself failed: {problem!r:.60}"
    if not re.fullmatch(f"({word} )*(n[0-9]*)?", text) or (text + " ").replace(f"{word} ", "").strip() not in word:
        return "mixed"
    if error:
        return "broken" if text else "lost"
    return "done" if text == f"{word} " * WORDS else "short"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(asyncio.run(storm(given.url, given.streams, given.seconds))) + "\n")
