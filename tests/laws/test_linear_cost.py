"""Law 4 (linear cost): ten million bytes leave a matcher in the states of the first few, so that each costs the same.

`benchmarks/bench_text.py` measures what a byte costs.
"""

from __future__ import annotations

import dovetail as dt
from tests.machines import byte_vocabulary, mask

TEXT = {
    "type": "triggered_tags",
    "triggers": ["<call>"],
    "tags": [{"type": "tag", "begin": "<call>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": "</call>"}],
}
CHUNK = ("A long story about çà et là, 1 < 2, <cal and such. " * 2000).encode()


def test_ten_megabytes_of_free_text_need_no_state_that_the_first_did_not() -> None:
    matcher = dt.compile(TEXT, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(CHUNK)
    first = mask(matcher), states(matcher)
    while matcher.position < 10_000_000:
        assert matcher.accept_bytes(CHUNK)
    assert first == (mask(matcher), states(matcher))
    assert matcher.is_complete
    assert matcher.accept_bytes(b"<call>ab</call>")


def test_a_hundred_thousand_tokens_need_no_state_that_the_first_did_not() -> None:
    matcher = dt.compile(TEXT, byte_vocabulary()).matcher()
    seen = []
    for _ in range(20):
        assert all(matcher.accept(byte) for byte in CHUNK[:5000])
        seen.append((mask(matcher), states(matcher)))
    assert [seen[0]] * 20 == seen


def states(matcher: dt.Matcher) -> int:
    """The bytes of all states that the grammars over its vocabulary have so far."""
    return int(matcher.store.automaton_bytes)
