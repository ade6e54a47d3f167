"""Random formats and texts, answered by us and by XGrammar in one process.

    python -m tests.laws.differential --pairs 20000 --seed 0

A disagreement is explained by the first of the known classes that fits it; one that no class fits is printed, and the
program ends with 1. The classes and their reasons stand in known_differences.toml.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import xgrammar

import dovetail as dt
from dovetail.grammar import ir
from dovetail.grammar.lower import lower
from tests.random_formats import make_format, make_noise
from tests.strategies import Dice, SeededDice, make_output

TEXTS_PER_FORMAT = 5
STOP = 256


@dataclass(frozen=True)
class Pair:
    """One format and one text; an answer is None where the engine refused the format."""

    format: dict[str, Any]
    text: bytes
    ours: bool | None
    theirs: bool | None


class Peer:
    """XGrammar over a vocabulary of single bytes."""

    def __init__(self) -> None:
        tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[STOP])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, fmt: dict[str, Any]) -> xgrammar.CompiledGrammar | None:
        try:
            return self._compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": fmt}))
        except RuntimeError:
            return None

    def accepts(self, grammar: xgrammar.CompiledGrammar, text: bytes) -> bool:
        matcher = xgrammar.GrammarMatcher(grammar)
        return all(matcher.accept_token(byte) for byte in text) and matcher.accept_token(STOP)


def compile_ours(fmt: dict[str, Any]) -> ir.Rule | None:
    try:
        rule = lower(dt.load_format(fmt))
        dt.accepts(rule, b"")
    except dt.DovetailError:
        return None
    return rule


def pairs(seed: int | str, count: int) -> Iterator[Pair]:
    """`count` pairs of random formats and texts in or near their languages."""
    dice, peer = SeededDice(seed), Peer()
    while count > 0:
        fmt = make_format(dice, dice.number(0, 3))
        rule, grammar = compile_ours(fmt), peer.compile(fmt)
        if rule is None or grammar is None:
            # A format that both refuse says nothing about texts.
            if (rule is None) != (grammar is None):
                yield Pair(fmt, b"", None if rule is None else True, None if grammar is None else True)
            continue
        for _ in range(min(TEXTS_PER_FORMAT, count)):
            text = make_text(dice, rule)
            yield Pair(fmt, text, dt.accepts(rule, text), peer.accepts(grammar, text))
            count -= 1


def make_text(dice: Dice, rule: ir.Rule) -> bytes:
    return make_noise(dice) if dice.number(0, 4) == 0 else make_output(dice, rule)


# Why the two part. A class is named in known_differences.toml, with its reason and an example.

PLAIN = str.maketrans({"é": "x", "€": "y", "𝄞": "z"})


def explain(pair: Pair, peer: Peer) -> str | None:
    """The first class that a disagreement belongs to."""
    return next((name for name, fits in CLASSES.items() if fits(pair, peer)), None)


def trigger_without_tags(pair: Pair, _: Peer) -> bool:
    return pair.theirs is None and any(
        not any(tag["begin"].startswith(trigger) for tag in node["tags"])
        for node in nodes(pair.format, "triggered_tags")
        for trigger in node["triggers"]
    )


def content_without_end(pair: Pair, _: Peer) -> bool:
    return (pair.ours is None) != (pair.theirs is None) and any(
        not any(ends_of(tag)) for tag in nodes(pair.format, "tag")
    )


def broken_utf8(pair: Pair, _: Peer) -> bool:
    return pair.ours is False and not is_utf8(pair.text)


def lone_surrogate(pair: Pair, _: Peer) -> bool:
    text = pair.text.decode(errors="replace").lower()
    pairless = re.sub(r"\\ud[89ab]..\\ud[c-f]..", "", text)
    return pair.ours is False and re.search(r"\\ud[89a-f]..", pairless) is not None


def characters(pair: Pair, peer: Peer) -> bool:
    """Whether the two agree once every character of format and text is a single byte."""
    if pair.ours is None or pair.theirs is None or not is_utf8(pair.text):
        return False
    fmt = json.loads(json.dumps(pair.format, ensure_ascii=False).translate(PLAIN))
    text = pair.text.decode().translate(PLAIN).encode()
    rule, grammar = compile_ours(fmt), peer.compile(fmt)
    return rule is not None and grammar is not None and dt.accepts(rule, text) == peer.accepts(grammar, text)


def spelling(pair: Pair, _: Peer) -> bool:
    """Whether we take the text once its strings have their canonical spelling."""
    rule = compile_ours(pair.format)
    if pair.ours is not False or rule is None or not is_utf8(pair.text):
        return False
    text = re.sub(r'"(?:[^"\\]|\\.)*"', canonical, pair.text.decode())
    return dt.accepts(rule, text.encode())


def canonical(found: re.Match[str]) -> str:
    try:
        return json.dumps(json.loads(found[0], strict=False), ensure_ascii=False)
    except ValueError:
        return found[0]


def overlapping_words(pair: Pair, _: Peer) -> bool:
    ends = [end for tag in nodes(pair.format, "tag") for end in ends_of(tag) if end]
    for node in (*nodes(pair.format, "dispatch"), *nodes(pair.format, "triggered_tags")):
        triggers = node["triggers"] if "triggers" in node else [rule[0] for rule in node["rules"]]
        words = [*triggers, *node.get("excludes", []), *ends]
        if any(overlap(a, b) for a in triggers for b in words if a != b):
            return True
    return False


CLASSES: dict[str, Callable[[Pair, Peer], bool]] = {
    "trigger_without_tags": trigger_without_tags,
    "content_without_end": content_without_end,
    "broken_utf8": broken_utf8,
    "lone_surrogate": lone_surrogate,
    "characters": characters,
    "spelling": spelling,
    "overlapping_words": overlapping_words,
}


def nodes(value: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Every format of that type inside a format."""
    if isinstance(value, dict):
        if value.get("type") == kind:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from nodes(part, kind)


def ends_of(tag: dict[str, Any]) -> list[str]:
    return tag["end"] if isinstance(tag["end"], list) else [tag["end"]]


def overlap(first: str, second: str) -> bool:
    """Whether one stands in the other, or the end of one begins the other."""
    if first in second or second in first:
        return True
    sizes = range(1, min(len(first), len(second)))
    return any(first.endswith(second[:size]) or second.endswith(first[:size]) for size in sizes)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", type=int, default=20, help="how many unexplained pairs to print")
    options = parser.parse_args()
    peer = Peer()
    seen, accepted, unexplained = 0, 0, 0
    explained: Counter[str] = Counter()
    for pair in pairs(options.seed, options.pairs):
        seen += 1
        accepted += pair.ours is True
        if pair.ours == pair.theirs:
            continue
        name = explain(pair, peer)
        if name is not None:
            explained[name] += 1
            continue
        unexplained += 1
        if unexplained <= options.show:
            shown = json.dumps(pair.format, ensure_ascii=False)
            sys.stdout.write(f"{shown} {pair.text!r} ours {pair.ours}, theirs {pair.theirs}\n")
    sys.stdout.write(f"{seen} pairs, {accepted} accepted, {explained.total()} explained, {unexplained} unexplained\n")
    sys.stdout.writelines(f"{number:6d} {name}\n" for name, number in explained.most_common())
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
