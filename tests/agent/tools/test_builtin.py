"""The built-in tools as a set: their schemas, names and imports."""

from __future__ import annotations

import re
import subprocess
import sys

import jsonschema
import pytest

from dovetail.agent.permissions import CORE_TOOLS
from dovetail.agent.protocols import Tool
from dovetail.agent.tools import builtin_tools


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_a_tool_is_one_that_every_provider_takes(tool: Tool) -> None:
    assert re.fullmatch(r"[a-z_]{1,64}", tool.name)
    assert tool.description.endswith(".")
    jsonschema.Draft202012Validator.check_schema(tool.parameters)
    assert "object" == tool.parameters["type"]
    assert all(value.get("description") or value["type"] == "array" for value in tool.parameters["properties"].values())


def test_names_are_unique_and_rules_know_the_core_tools() -> None:
    names = [tool.name for tool in builtin_tools()]
    assert len(names) == len(set(names))
    assert CORE_TOOLS <= set(names)


def test_only_tools_that_change_nothing_run_side_by_side() -> None:
    reading = {tool.name for tool in builtin_tools() if tool.read_only}
    assert {"read_file", "list_directory", "glob", "grep_search", "web_fetch"} == reading


def test_optional_packages_are_imported_only_when_they_are_used() -> None:
    modules = "dovetail.agent.mcp, dovetail.agent.hooks, dovetail.agent.telemetry, dovetail.agent.recording"
    loaded = "[name for name in ('mcp', 'opentelemetry.trace', 'httpx2', 'openai') if name in sys.modules]"
    program = f"import sys, {modules}; sys.exit(', '.join({loaded}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ("", "") == (done.stderr.strip(), done.stdout)
