"""What the whole suite shares: recorded answers of peers, and settings for random tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Random tests repeat themselves in CI, and no test fails because a machine is slow.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests of real models are collected only by those who ask for them: they need another extra, and time."""
    if collection_path.name == "models_real" and "real_model" not in config.option.markexpr:
        return True
    return None


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of recorded answers, which lies beside the repository and not in it."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "conformance"
    folder = Path(os.environ.get("DOVETAIL_CONFORMANCE", beside))
    if not folder.is_dir():
        pytest.skip(f"the recorded answers are not at {folder}; set DOVETAIL_CONFORMANCE to their folder")
    return folder
