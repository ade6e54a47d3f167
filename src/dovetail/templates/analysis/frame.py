"""Where a turn of the assistant begins and ends, and the switches that change it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from dovetail.templates.analysis.diff import (
    behind_header,
    closers,
    common_header,
    markers,
    segments,
    shared_end,
    shared_start,
)
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
_SPOILED = re.compile(r"\bNone\b|\bnull\b|&#3[49];")  # what is missing written out, quotes escaped as HTML
_SENTINEL = re.compile(r"[Zz]q")
SENTENCE = re.compile(r"(?:[A-Za-z']+[\s,.:]+){4}")
_MAX_PROBES = 48  # of switches, however many variables a template has


@dataclass(frozen=True, slots=True)
class Frame:
    """The turn of the assistant behind the text of the user: `user_end`, `start`, the body, `end`."""

    user_ends: tuple[tuple[Settings, str], ...]  # by settings: a switch may show at the end of the user's turn
    start: str
    end: str  # behind plain content
    prompts: tuple[tuple[Settings, str], ...]  # what the generation prompt writes behind `start`, by settings
    switches: tuple[Settings, ...]  # settings that change the prompt or show reasoning, the default first
    appended: str = ""  # a prompt or an instruction that the template writes behind everything, asked or not
    history_start: str = ""  # what turns of history have instead of `start`

    @property
    def user_end(self) -> str:
        """What closes the turn of the user."""
        return self.user_ends[0][1]

    def body(self, turn: str, settings: Settings = ()) -> str:
        """A turn without what is before it; its end stays."""
        user_end = dict(self.user_ends).get(settings, self.user_end)
        if self.appended and turn.endswith(self.appended) and len(turn) > len(user_end + self.appended):
            turn = turn[: -len(self.appended)]
        for start in (self.start, self.history_start):
            if start and turn.startswith(user_end + start):
                return turn[len(user_end + start) :]
        return behind_header(user_end + self.start, turn.removeprefix(user_end).removeprefix(self.start), turn)


def call_shapes(prober: Prober) -> list[Shape]:
    """The shapes in which calls can be passed to be rendered, the usual one first; none where they never are.

    What Transformers refuses is taken into account only where it refuses all there is to see.
    """
    if prober.turn(assistant(CONTENT)) is None:
        prober.lenient = True
        if prober.turn(assistant(CONTENT)) is None:
            prober.lenient = prober.takes_tools = False
            prober.no_tools = None if prober.turn(assistant(CONTENT)) is not None else []
    shapes = _rendered_shapes(prober)
    if not shapes and not prober.lenient:
        prober.lenient = True
        shapes = _rendered_shapes(prober)
        prober.lenient = bool(shapes)
    return shapes


def _rendered_shapes(prober: Prober) -> list[Shape]:
    for named_ids, flat in ((False, False), (False, True), (True, False)):
        shapes = [_shape(prober, Shape(arguments, flat, named_ids=named_ids)) for arguments in ("object", "string")]
        if any(shapes):
            return [shape for shape in shapes if shape]
    return []


def _shape(prober: Prober, shape: Shape) -> Shape | None:
    """The shape with what stands for no content in the shortest turn that has it all."""
    fitting: list[tuple[int, int, Shape]] = []
    for place, no_content in enumerate(("empty", "none", "absent")):
        own = replace(shape, no_content=no_content)
        turn = prober.turn(assistant(calls=ONE_CALL, shape=own))
        if turn and NAMES[0] in turn and VALUES[0] in turn and not _SPOILED.search(turn):
            fitting.append((len(turn), place, own))
    return min(fitting, key=lambda row: row[:2])[2] if fitting else None


def switches(prober: Prober, source: Source) -> tuple[Settings, ...]:
    """The settings that change how a turn begins or whether reasoning is shown; the default comes first."""
    seen = {_looks(prober, ())}
    settings: list[Settings] = [()]
    probes = 0
    for name, words in source.variables:
        for value in (True, False, *words[:4]):
            probes += 1
            if probes > _MAX_PROBES:
                return tuple(settings)
            look = _looks(prober, ((name, value),))
            if look not in seen and look[0] is not None and not _printed(value, look[0]):
                seen.add(look)
                settings.append(((name, value),))
    return tuple(settings)


def _printed(value: Any, prompt: str) -> bool:
    """Whether a prompt only writes the value of the variable out."""
    return isinstance(value, bool) and str(value) in prompt


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
    if not plain.startswith(prompted[: len(prompted) - len(appended)].rstrip()):
        appended = ""  # it differs with the role that speaks last, and is no prompt
    if appended:
        user_ends = dict.fromkeys(settings, prompted[: -len(appended)])
        after = after[: -len(appended)]
    else:
        user_ends = {setting: _user_end(prober, setting, turns[setting]) for setting in settings}
        appended = _instruction(prober, after)
        after = after.removesuffix(appended)
    prompts = {setting: turns[setting].removeprefix(user_ends[setting]) for setting in settings}
    bodies = _bodies(prober, shape, user_ends)
    start = _start(prober, [text for text in prompts.values() if text], bodies)
    if prober.view.block_marker and len(markers(start)) > 1 and start.endswith(markers(start)[-1]):
        start = start.removesuffix(markers(start)[-1])
    if not start.strip() and not any(text.strip() for text in prompts.values()):
        user_ends, start = _split_header(user_ends)
    in_prompts = any(text.startswith(start) for text in prompts.values())  # or else it is behind what prompts write
    rests = tuple((setting, text.removeprefix(start) if in_prompts else "") for setting, text in prompts.items())
    if prober.view.prompt_header and rests[0][1].strip():
        whole = tuple((setting, "") for setting, _ in rests)
        return Frame(tuple(user_ends.items()), start + rests[0][1], after, whole, settings, appended, start)
    return Frame(tuple(user_ends.items()), start, after, rests, settings, appended)


def _start(prober: Prober, prompts: list[str], bodies: list[str]) -> str:
    """The header of a turn: what prompts and turns have in common, or turns alone where prompts begin otherwise."""
    candidates = [*prompts, *bodies]
    start = _SENTINEL.split(common_header(*candidates), maxsplit=1)[0] if candidates else ""
    if not start.strip() and bodies:
        start = _SENTINEL.split(common_header(*bodies), maxsplit=1)[0]
    return _without_open_marker(start if prober.view.whole_header else _carved(prober, start), candidates)


def _split_header(user_ends: dict[Settings, str]) -> tuple[dict[Settings, str], str]:
    """The end of the user's turn without the header of the next turn, where no prompt tells one from the other."""
    marks = markers(user_ends[()])
    start = user_ends[()][user_ends[()].rfind(marks[-1]) :] if len(marks) > 1 else ""
    return {setting: end.removesuffix(start) for setting, end in user_ends.items()}, start


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


def _instruction(prober: Prober, after: str) -> str:
    """The sentences that a template writes behind every conversation, which are no part of its last turn."""
    end = (prober.earlier_turn(assistant(CONTENT)) or "").rpartition(CONTENT)[2]
    ends = markers(end)
    opening = prober.render([user()], None) or prober.render([user()]) or ""
    if len(ends) > 1 and ends[-1] in opening.partition(USER)[0]:
        end = end[: end.rfind(ends[-1])]  # it opens each turn, also the first
    rest = after.removeprefix(end)
    return rest if end.strip() and rest != after and SENTENCE.search(rest) else ""


def _bodies(prober: Prober, shape: Shape | None, user_ends: dict[Settings, str]) -> list[str]:
    """Turns of the assistant with all that they may hold, and an earlier one that may hold less."""
    messages = [assistant(CONTENT), assistant(CONTENT, REASONING)]
    if shape:
        messages += [assistant(calls=ONE_CALL, shape=shape), assistant("", REASONING, ONE_CALL, shape)]
    turns = [
        (prober.turn(message, settings=setting), end) for message in messages for setting, end in user_ends.items()
    ]
    earlier = prober.render([user(), assistant(CONTENT, REASONING), user(OTHER_USER)])
    if earlier and USER in earlier and OTHER_USER in earlier:
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
    closed = any(behind_header(start, "", turn).lstrip().startswith(tuple(closers(last[0]))) for turn in turns)
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
