"""We accept exactly what XGrammar accepts, but for the differences that are known."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from tests.laws.differential import CLASSES, Pair, Peer, compile_ours, explain, pairs

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["differential"]


def test_random_formats_accept_what_the_peer_accepts() -> None:
    peer = Peer()
    different = [pair for pair in pairs("suite", 3000) if pair.ours != pair.theirs]
    assert [] == [pair for pair in different if explain(pair, peer) is None]


def test_every_class_of_differences_has_its_reason() -> None:
    assert set(CLASSES) == set(DIFFERENCES)


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
def test_a_known_difference_still_differs(name: str) -> None:
    known: dict[str, Any] = DIFFERENCES[name]
    peer, fmt = Peer(), json.loads(known["format"])
    text = bytes.fromhex(known["hex"]) if "hex" in known else known["text"].encode()
    rule, grammar = compile_ours(fmt), peer.compile(fmt)
    ours = None if rule is None else dt.accepts(rule, text)
    theirs = None if grammar is None else peer.accepts(grammar, text)
    assert (known.get("ours"), known.get("theirs")) == (ours, theirs)
    assert ours != theirs
    assert CLASSES[name](Pair(fmt, text, ours, theirs), peer)
