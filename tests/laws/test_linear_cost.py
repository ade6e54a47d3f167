"""Law 4 (linear cost): a byte costs the same at the start of an output and after ten million others."""

from __future__ import annotations

import time

import dovetail as dt
from tests.machines import byte_vocabulary

TEXT = {
    "type": "triggered_tags",
    "triggers": ["<call>"],
    "tags": [{"type": "tag", "begin": "<call>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": "</call>"}],
}
CHUNK = ("A long story about çà et là, 1 < 2, <cal and such. " * 2000).encode()


def test_ten_megabytes_of_free_text_cost_the_same_per_byte_as_the_first() -> None:
    matcher = dt.compile(TEXT, byte_vocabulary()).matcher()
    seconds = []
    while matcher.position < 10_000_000:
        start = time.perf_counter()
        assert matcher.accept_bytes(CHUNK)
        seconds.append(time.perf_counter() - start)
    assert matcher.is_complete
    assert matcher.accept_bytes(b"<call>ab</call>")
    # The quickest chunks are compared, because a busy machine only ever adds time.
    early, late = min(seconds[:20]), min(seconds[-20:])
    assert late < 3 * early
    assert early / len(CHUNK) < 1e-6


def test_a_hundred_thousand_tokens_cost_the_same_as_the_first() -> None:
    matcher = dt.compile(TEXT, byte_vocabulary()).matcher()
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        for byte in CHUNK[:5000]:
            assert matcher.accept(byte)
        seconds.append(time.perf_counter() - start)
    assert min(seconds[-5:]) < 3 * min(seconds[:5])
