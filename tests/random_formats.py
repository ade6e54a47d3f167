"""Random formats as a request would carry them, of every kind, over few words so that their parts collide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.strategies import CHARACTERS, WORDS, Dice, DrawnDice, mutate

Json = dict[str, Any]

BEGINS = ("<a>", "<b>", "<ab>", "a", "é<", "")
ENDS = ("</a>", ">", "b", "</a>b", "€", "")
TRIGGERS = ("<", "<a", "<ab", "a", "é")
SEPARATORS = ("", ",", "a", "</a>", "é")
PATTERNS = ("[ab]+", "a|b", "[^<]*", "(ab){1,3}", "é?", "[a-z]{2,4}", ".", "(a|bc)*c", "[^a]")
GRAMMARS = (
    'root ::= "a" root "b" | ""',
    'root ::= root "a" | "b"',
    'root ::= item ("," item)*\nitem ::= [a-c]+ | "é"',
    'root ::= ("ab" | "a"){2,3} "</a>"?',
    'root ::= x x\nx ::= "" | "<" x ">"',
)
# Whole numbers and constant strings are left out: JSON Schema knows more ways to write them than the peer does.
SCHEMAS: tuple[Any, ...] = (
    {"type": "boolean"},
    {"type": "null"},
    {"type": "string"},
    {"enum": [True, None]},
    {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}}},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"const": True}}]},
)
TOKENS: tuple[int | str, ...] = (0, 1, 2, "<a>", "</a>", "ab")


def make_format(dice: Dice, depth: int, *, tokens: bool = False, captures: bool = False) -> Json:
    """A format of any kind; with `tokens` also token-level ones, with `captures` also ours."""
    return _Formats(dice, tokens, captures).any(depth)


class _Formats:
    def __init__(self, dice: Dice, tokens: bool, captures: bool) -> None:
        self.dice, self.tokens, self.captures = dice, tokens, captures

    def any(self, depth: int) -> Json:
        if depth == 0:
            return self.leaf()
        nests: list[Callable[[int], Json]] = [
            self.sequence,
            self.sequence,
            self.choice,
            self.repetition,
            self.tag,
            self.tag,
            self.triggered,
            self.separated,
            self.dispatch,
        ]
        if self.tokens:
            nests += [self.token_tag, self.token_triggered, self.token_dispatch]
        if self.captures:
            nests += [self.capture, self.capture]
        return self.dice.pick(nests)(depth - 1)

    def leaf(self) -> Json:
        dice = self.dice
        match dice.number(0, 10 if self.tokens else 7):
            case 0 | 1:
                return {"type": "const_string", "value": dice.pick((*WORDS, ""))}
            case 2 | 3:
                return self.any_text()
            case 4:
                return {"type": "regex", "pattern": dice.pick(PATTERNS)}
            case 5:
                return {"type": "grammar", "grammar": dice.pick(GRAMMARS)}
            case 6 | 7:
                return {"type": "json_schema", "json_schema": dice.pick(SCHEMAS)}
            case 8:
                return {"type": "token", "token": dice.pick(TOKENS)}
            case 9:
                return {"type": "exclude_token", "exclude_tokens": self.some(TOKENS, 0, 2)}
            case _:
                return {"type": "any_tokens", "exclude_tokens": self.some(TOKENS, 0, 2)}

    def some(self, options: tuple[Any, ...], low: int, high: int) -> list[Any]:
        """A few different ones."""
        return list(dict.fromkeys(self.dice.pick(options) for _ in range(self.dice.number(low, high))))

    def any_text(self) -> Json:
        made: Json = {"type": "any_text", "excludes": self.some(WORDS, 0, 2)}
        if self.dice.number(0, 3) == 0:
            made["max_chars"] = self.dice.number(0, 3)
        return made

    def sequence(self, depth: int) -> Json:
        return {"type": "sequence", "elements": [self.any(depth) for _ in range(self.dice.number(1, 3))]}

    def choice(self, depth: int) -> Json:
        return {"type": "or", "elements": [self.any(depth) for _ in range(self.dice.number(1, 3))]}

    def repetition(self, depth: int) -> Json:
        kind = self.dice.pick(("optional", "plus", "star", "repeat"))
        made: Json = {"type": kind, "content": self.any(depth)}
        if kind == "repeat":
            made["min"] = self.dice.number(0, 2)
            made["max"] = self.dice.pick((-1, made["min"], made["min"] + 1))
        return made

    def tag(self, depth: int) -> Json:
        end = self.dice.pick(ENDS) if self.dice.number(0, 2) else self.some(ENDS, 1, 2)
        return {"type": "tag", "begin": self.dice.pick(BEGINS), "content": self.any(depth), "end": end}

    def triggered(self, depth: int) -> Json:
        triggers = self.some(TRIGGERS, 1, 2)
        tags = [{**self.tag(depth), "begin": self.dice.pick(triggers) + self.dice.pick(("", ">", "b"))}]
        if self.dice.number(0, 1):
            tags.append({**self.tag(depth), "begin": self.dice.pick(triggers) + self.dice.pick(("c", "é"))})
        return {
            "type": "triggered_tags",
            "triggers": triggers,
            "tags": tags,
            "excludes": self.some(WORDS, 0, 1),
            **self.flags(),
        }

    def flags(self) -> Json:
        return {"at_least_one": self.dice.number(0, 2) == 0, "stop_after_first": self.dice.number(0, 2) == 0}

    def separated(self, depth: int) -> Json:
        tags = [self.tag(depth) for _ in range(self.dice.number(1, 2))]
        return {"type": "tags_with_separator", "tags": tags, "separator": self.dice.pick(SEPARATORS), **self.flags()}

    def dispatch(self, depth: int) -> Json:
        rules = [[trigger, self.any(depth)] for trigger in self.some(TRIGGERS, 1, 2)]
        return {
            "type": "dispatch",
            "rules": rules,
            "loop": self.dice.number(0, 2) > 0,
            "excludes": self.some(WORDS, 0, 1),
        }

    # Ours, and those that need a vocabulary.

    def capture(self, depth: int) -> Json:
        return {"type": "capture", "name": self.dice.pick(("x", "y")), "content": self.any(depth)}

    def token(self) -> Json:
        return {"type": "token", "token": self.dice.pick(TOKENS)}

    def token_tag(self, depth: int) -> Json:
        return {"type": "tag", "begin": self.token(), "content": self.any(depth), "end": self.token()}

    def token_triggered(self, depth: int) -> Json:
        tag = self.token_tag(depth)
        return {
            "type": "token_triggered_tags",
            "trigger_tokens": [tag["begin"]["token"]],
            "tags": [tag],
            "exclude_tokens": self.some(TOKENS, 0, 1),
            **self.flags(),
        }

    def token_dispatch(self, depth: int) -> Json:
        return {
            "type": "token_dispatch",
            "rules": [[token, self.any(depth)] for token in self.some(TOKENS, 1, 2)],
            "loop": self.dice.number(0, 2) > 0,
            "exclude_tokens": self.some(TOKENS, 0, 1),
        }


def make_noise(dice: Dice) -> bytes:
    """Words of the kind that random formats are made of, in no order."""
    pieces = (*WORDS, *ENDS, *CHARACTERS, "1", "true", '"a"', '{"a": 1}', ",")
    data = "".join(dice.pick(pieces) for _ in range(dice.number(0, 4))).encode()
    return data if dice.number(0, 2) else mutate(dice, data)


@st.composite
def formats(
    draw: Callable[[st.SearchStrategy[Any]], Any], *, tokens: bool = False, captures: bool = False, depth: int = 2
) -> Json:
    dice = DrawnDice(draw)
    return make_format(dice, dice.number(0, depth), tokens=tokens, captures=captures)
