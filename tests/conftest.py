"""What the whole suite shares: recorded answers of peers, and settings for random tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.recorded import COMMAND, FETCHED, FOLDER, is_public

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
    """The folder of recorded answers and published data; where a file is missing, the test is left out and named."""
    return FOLDER


_MISSING = "missing"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, FileNotFoundError) and FOLDER in Path(str(error.filename)).parents:
        name = Path(error.filename).relative_to(FOLDER).as_posix()
        report.user_properties.append((_MISSING, name))
        if not _is_required(name):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"{name} is not there")
    return report


def _is_required(name: str) -> bool:
    """Whether a missing file fails its test: in CI, all that is recorded or could have been fetched."""
    return os.environ.get("DOVETAIL_DATA") == "required" and (FOLDER != FETCHED or is_public(name))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run names the data that was not there, and the command that brings it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    reports = [report for kind in ("skipped", "failed", "error") for report in reporter.getreports(kind)]
    # A file that could not be collected has a report without properties.
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    missing = [str(name) for key, name in properties if key == _MISSING]
    if missing:
        public = sorted({name for name in missing if is_public(name)})
        recorded = sorted({name.rpartition("/")[0] or name for name in missing if not is_public(name)})
        parts = [f"`{COMMAND}` brings {', '.join(public)}"] * bool(public)
        parts += [f"recorded and not public: {', '.join(recorded)}"] * bool(recorded)
        reporter.write_line(f"{len(missing)} tests found no data: {'; '.join(parts)}")
