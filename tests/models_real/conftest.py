"""Tests with a real model, which the extra `dev-models` brings; they run only with `-m real_model`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.models import load
from dovetail.models.llama import LlamaModel
from dovetail.models.locate import locate


@pytest.fixture(scope="session")
def model_file() -> Path:
    return locate("smollm2").path


@pytest.fixture(scope="session")
def model() -> Iterator[LlamaModel]:
    made = load("smollm2")
    assert isinstance(made, LlamaModel)
    yield made
    made.close()
