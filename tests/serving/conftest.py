"""One server for all tests of the room, with the speaker in every dialect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.serving import speakers
from tests.serving.asking import serving


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with serving(speakers()) as url:
        yield url
