"""Where a turn of the assistant begins and ends, and the switches that change it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dovetail.templates.analysis.diff import markers, segments, shared_end, shared_start
from dovetail.templates.analysis.probes import (
    CONTENT,
    KEYS,
    NAMES,
    OTHER_USER,
    REASONING,
    USER,
    VALUES,
    Call,
    Prober,
    Shape,
    assistant,
    user,
)
from dovetail.templates.analysis.source import Source

Settings = tuple[tuple[str, Any], ...]

ONE_CALL = (Call(NAMES[0], {KEYS[0]: VALUES[0], KEYS[1]: VALUES[1]}),)
_MAX_PROBES = 48  # of switches, however many variables a template has


@dataclass(frozen=True, slots=True)
class Frame:
    """The turn of the assistant behind the text of the user: `user_end`, `start`, the body, `end`."""

    user_ends: tuple[tuple[Settings, str], ...]  # by settings: a switch may show at the end of the user's turn
    start: str
    end: str  # behind plain content
    prompts: tuple[tuple[Settings, str], ...]  # what the generation prompt writes behind `start`, by settings
    switches: tuple[Settings, ...]  # settings that change the prompt or show reasoning, the default first
    appended: str = ""  # a prompt that the template writes behind everything, asked or not

    @property
    def user_end(self) -> str:
        """What closes the turn of the user."""
        return self.user_ends[0][1]

    def body(self, turn: str, settings: Settings = ()) -> str:
        """A turn without what is before it; its end stays."""
        text = turn.removeprefix(dict(self.user_ends).get(settings, self.user_end))
        if self.appended and text.endswith(self.appended) and len(text) > len(self.appended):
            text = text[: -len(self.appended)]
        return text.removeprefix(self.start)


def call_shape(prober: Prober) -> Shape | None:
    """How calls must be passed to be rendered, or None where they never are.

    What Transformers refuses is taken into account only where it refuses all there is to see.
    """
    if prober.turn(assistant(CONTENT)) is None:
        prober.lenient = True
        if prober.turn(assistant(CONTENT)) is None:
            prober.lenient = prober.takes_tools = False
    shape = _strict_shape(prober)
    if shape is None and not prober.lenient:
        prober.lenient = True
        shape = _strict_shape(prober)
        prober.lenient = shape is not None
    return shape


def _strict_shape(prober: Prober) -> Shape | None:
    found: list[tuple[int, int, Shape]] = []
    for arguments, flat in (("object", False), ("string", False), ("object", True), ("string", True)):
        for place, no_content in enumerate(("empty", "none", "absent")):
            shape = Shape(arguments, flat, no_content)
            turn = prober.turn(assistant(calls=ONE_CALL, shape=shape))
            if turn and NAMES[0] in turn and VALUES[0] in turn and not re.search(r"\bNone\b|\bnull\b", turn):
                found.append((len(turn), place, shape))
        if found:
            return min(found, key=lambda row: row[:2])[2]
    return None


def switches(prober: Prober, source: Source) -> tuple[Settings, ...]:
    """The settings that change how a turn begins or whether reasoning is shown; the default comes first."""
    seen = {_looks(prober, ())}
    found: list[Settings] = [()]
    probes = 0
    for name, words in source.variables:
        for value in (True, False, *words[:4]):
            probes += 1
            if probes > _MAX_PROBES:
                return tuple(found)
            look = _looks(prober, ((name, value),))
            if look not in seen and look[0] is not None:
                seen.add(look)
                found.append(((name, value),))
    return tuple(found)


def _looks(prober: Prober, settings: Settings) -> tuple[str | None, str | None]:
    return (
        prober.turn(None, prompt=True, settings=settings),
        prober.turn(assistant(CONTENT, REASONING), settings=settings),
    )


def frame(prober: Prober, source: Source, shape: Shape | None) -> Frame | None:
    """The frame of a turn; None where the template renders no content of an assistant."""
    user_only, prompted = prober.turn(None), prober.turn(None, prompt=True)
    plain = prober.turn(assistant(CONTENT))
    if plain is None or CONTENT not in plain or prompted is None:
        return None
    before, _, after = plain.rpartition(CONTENT)
    user_only = prompted if user_only is None else user_only
    settings = switches(prober, source)
    turns = {setting: prober.turn(None, prompt=True, settings=setting) or "" for setting in settings}
    appended = _appended(prompted, before, after) if user_only == prompted else ""
    if appended:
        user_ends = dict.fromkeys(settings, prompted[: -len(appended)])
        after = after[: -len(appended)]
    else:
        user_ends = {setting: _user_end(prober, setting, turns[setting]) for setting in settings}
    prompts = {setting: turns[setting].removeprefix(user_ends[setting]) for setting in settings}
    candidates = [text for text in prompts.values() if text] + _bodies(prober, shape, user_ends)
    start = _carved(prober, shared_start(*candidates)) if candidates else ""
    start = _without_open_marker(start, candidates)
    rests = tuple((setting, text.removeprefix(start)) for setting, text in prompts.items())
    return Frame(tuple(user_ends.items()), start, after, rests, settings, appended)


def _user_end(prober: Prober, settings: Settings, prompted: str) -> str:
    alone = prober.turn(None, settings=settings)
    plain = prober.turn(assistant(CONTENT), settings=settings) or prompted
    return shared_start(prompted if alone is None else alone, prompted, plain)


def _appended(prompted: str, before: str, after: str) -> str:
    """The prompt that a template writes behind every conversation, or nothing."""
    common = shared_end(prompted, after)
    if len(common) in (len(prompted), len(after)):
        # It cannot be all: the turn before it has an end too.
        first = next((part for part in segments(common) if part.strip()), "")
        common = common[common.find(first) + len(first) :].lstrip() if first else ""
    return common if common.strip() and before.endswith(common[: len(common) // 2]) | (common in before + after) else ""


def _bodies(prober: Prober, shape: Shape | None, user_ends: dict[Settings, str]) -> list[str]:
    """Turns of the assistant with all that they may hold, and an earlier one that may hold less."""
    messages = [assistant(CONTENT), assistant(CONTENT, REASONING)]
    if shape:
        messages += [assistant(calls=ONE_CALL, shape=shape), assistant("", REASONING, ONE_CALL, shape)]
    turns = [
        (prober.turn(message, settings=setting), end) for message in messages for setting, end in user_ends.items()
    ]
    earlier = prober.render([user(), assistant(CONTENT, REASONING), user(OTHER_USER)])
    if earlier and USER in earlier:
        turns.append((earlier.partition(USER)[2].partition(OTHER_USER)[0], user_ends[()]))
    return [
        turn[len(end) :]
        for turn, end in turns
        if turn and (CONTENT in turn or NAMES[0] in turn) and turn.startswith(end) and len(turn) > len(end)
    ]


def _without_open_marker(start: str, turns: list[str]) -> str:
    """The start of a turn without a marker at its end that some turn closes right away: it opens an empty block."""
    last = markers(start)[-1:]
    if not last or not start.rstrip().endswith(last[0]):
        return start
    closing = last[0][0] + "/" + last[0][1:]
    closed = any(turn.startswith(start) and turn[len(start) :].lstrip().startswith(closing) for turn in turns)
    return start[: start.rfind(last[0])] if closed else start


def _carved(prober: Prober, start: str) -> str:
    """The start without what comes behind the header of the turn, which looks like that of the user's turn."""
    text = prober.render([user(), assistant(CONTENT), user(OTHER_USER)])
    if not text or OTHER_USER not in text or CONTENT not in text:
        return start
    header = shared_end(text.partition(USER)[0], text.partition(CONTENT)[2].partition(OTHER_USER)[0])
    role = re.search(r"(?is)(.*)user(.*)", header)
    if not role or not role[2]:
        return start
    same = next(size for size in range(len(role[1]), -1, -1) if start.startswith(role[1][len(role[1]) - size :]))
    at = start.find(role[2], same)
    rest = start[at + len(role[2]) :]
    return start[: at + len(role[2])] if at > 0 and rest.strip() else start
