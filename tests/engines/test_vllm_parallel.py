"""A vLLM with tensor parallel workers holds constraints; the model has nine heads, which three workers can share."""

from __future__ import annotations

from pathlib import Path

import openai

from tests.engines.cases import TOUR
from tests.engines.conftest import MASKS, PARSERS, Server


def test_parallel_workers_call_a_tool_as_asked(tmp_path: Path) -> None:
    server = Server.start(tmp_path / "log", *MASKS, *PARSERS, "--tensor-parallel-size", "3")
    try:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=300, max_retries=0) as client:
            [case] = [case for case in TOUR if case.name == "tools, required"]
            case.run(client)
    finally:
        server.stop()
