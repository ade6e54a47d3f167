"""The declared tools are distinct, and the arguments written for them fit."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from random import Random
from types import ModuleType

import jsonschema
import pytest

import dovetail as dt


@pytest.fixture
def tool_sets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent.parent / "benchmarks"))
    return importlib.import_module("tool_sets")


@pytest.mark.parametrize("seed", [0, 1])
def test_arguments_fit_their_schema(tool_sets: ModuleType, seed: int) -> None:
    for tool in tool_sets.tool_set(100, seed):
        for attempt in range(3):
            jsonschema.validate(tool.write(Random(attempt)), tool.parameters)


def test_tools_are_distinct_within_a_set_and_between_sets(tool_sets: ModuleType) -> None:
    sets = [{json.dumps(tool.parameters) for tool in tool_sets.tool_set(100, seed)} for seed in (1, 2)]
    assert len({tool.name for tool in tool_sets.tool_set(100, 1)}) == 100
    # A small schema can meet its like by chance; nearly all are new.
    assert len(sets[0] & sets[1]) <= 5


def test_outputs_fit_the_request(tool_sets: ModuleType) -> None:
    tools = tool_sets.tool_set(10, 3)
    for output in tool_sets.outputs(tools, 6, 3):
        assert dt.accepts(tool_sets.request(tools).tag, output)
