"""Free text written out: one rule per state of an Aho-Corasick automaton over its excludes and stops."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import chars
from dovetail.grammar.regex.syntax import decoded

MAX_RULES = 10_000


def free_text(text: ir.Text, name: str) -> ir.Node:
    """Rules for `text`, whose arms and `after` are portable already."""
    if text.max_tokens is not None:
        raise GrammarError("a budget of tokens depends on the vocabulary", "", "use max_chars")
    if not text.excludes and not text.stops:
        assert text.after is not None
        return ir.seq(ir.Repeat(ir.ANY_CHAR, text.min_chars, text.max_chars), text.after)
    words = _Words.of([decoded(word) for word in (*text.excludes, *(stop for stop, _ in text.stops))])
    # Each character leads into the next round; without a budget the last one goes on and on.
    last = text.min_chars if text.max_chars is None else text.max_chars
    if len(words.suffixes) * (last + 1) > MAX_RULES:
        raise LimitError(f"the text needs more than {MAX_RULES} rules", "", "use shorter excludes or a smaller budget")
    rules = [{state: ir.Rule(name, ir.NOTHING) for state in words.states()} for _ in range(last + 1)]
    everywhere = _stop_choices(text, words, 0)
    shared = ir.Rule(f"{name}-stop", ir.alt(*everywhere))
    for round_, by_state in enumerate(rules):
        ahead = rules[round_ + 1] if round_ < last else by_state if text.max_chars is None else None
        for state, rule in by_state.items():
            may_end = round_ >= text.min_chars
            branches: list[ir.Node] = [text.after] if may_end and text.after is not None else []
            if ahead is not None:
                branches += [ir.seq(chars(to.ranges), ir.Call(ahead[at])) for at, to in words.steps(state)]
            stops = _stop_choices(text, words, state) if may_end else []
            branches += [ir.Call(shared)] if stops and stops == everywhere else stops
            rule.body = ir.alt(*branches)
    return ir.Call(rules[0][0])


def _stop_choices(text: ir.Text, words: _Words, state: int) -> list[ir.Node]:
    """The stops that may follow the text that led to `state`, each with its arm."""
    stops = [decoded(stop) for stop, _ in text.stops]
    return [
        ir.seq(ir.Lit(data, special=True), arm)
        for (data, arm), stop in zip(text.stops, stops, strict=True)
        if not _comes_late(words.suffixes[state], stop, stops)
    ]


def _comes_late(before: str, stop: str, stops: list[str]) -> bool:
    """Whether another stop, begun in the text before, is complete sooner than `stop`."""
    for read in range(1, len(stop) + 1):
        if stop[:read] in stops:
            return False
        if any((before + stop[:read]).endswith(other) for other in stops):
            return True
    return False


@dataclass(slots=True)
class _Words:
    """The automaton; a state stands for the longest end of the text that begins a word, and is full at a whole word."""

    suffixes: list[str] = field(default_factory=lambda: [""])
    _next: list[dict[str, int]] = field(default_factory=lambda: [{}])
    _shorter: list[int] = field(default_factory=lambda: [0])
    _full: list[bool] = field(default_factory=lambda: [False])

    @classmethod
    def of(cls, words: list[str]) -> _Words:
        """The automaton of `words`, none of which is empty."""
        made = cls()
        for word in words:
            state = 0
            for length, char in enumerate(word, start=1):
                if char not in made._next[state]:
                    made._next[state][char] = len(made.suffixes)
                    made.suffixes.append(word[:length])
                    made._next.append({})
                    made._shorter.append(0)
                    made._full.append(False)
                    if len(made.suffixes) > MAX_RULES:
                        raise LimitError(f"the text needs more than {MAX_RULES} rules", "", "use shorter excludes")
                state = made._next[state][char]
            made._full[state] = True
        made._link()
        return made

    def _link(self) -> None:
        """Find for each state, shorter ones first, the longest shorter end of the text that begins a word."""
        pending = deque([0])
        while pending:
            state = pending.popleft()
            for char, target in self._next[state].items():
                if state:
                    self._shorter[target] = self._step(self._shorter[state], char)
                    self._full[target] |= self._full[self._shorter[target]]
                pending.append(target)

    def _step(self, state: int, char: str) -> int:
        while state and char not in self._next[state]:
            state = self._shorter[state]
        return self._next[state].get(char, 0)

    def steps(self, state: int) -> list[tuple[int, ir.Chars]]:
        """The states one character further, and the characters that lead there; none completes a word."""
        named: set[str] = set()
        shorter = state
        while True:
            named |= self._next[shorter].keys()
            if not shorter:
                break
            shorter = self._shorter[shorter]
        by_target: dict[int, list[tuple[int, int]]] = {0: []}
        for char in named:
            target = self._step(state, char)
            if not self._full[target]:
                by_target.setdefault(target, []).append((ord(char), ord(char)))
        by_target[0].extend(ir.complement((ord(char), ord(char)) for char in named).ranges)
        return [(target, ir.chars(ranges)) for target, ranges in sorted(by_target.items())]

    def states(self) -> list[int]:
        """The states that a text can be in."""
        return [state for state, full in enumerate(self._full) if not full]
