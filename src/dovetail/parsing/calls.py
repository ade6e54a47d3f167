"""Calls of tools, in each way in which they can be laid out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

from dovetail.messages import from_json
from dovetail.parsing import json_arguments, json_text, literals, quoted, tagged
from dovetail.parsing.json_calls import JsonObject
from dovetail.parsing.layouts import ID, NAME, Field, JsonCall, KeyedCall
from dovetail.parsing.noise import marker_ahead, marker_behind, markers, telling
from dovetail.parsing.plan import Head, Phrase, Plan, Way
from dovetail.parsing.signs import PLAIN, SIGN_CLASS
from dovetail.parsing.tape import Steps, Tape, closing, literal, one_of, peek, peek_behind_space, phrase, run, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import look_for

MAX_NAME = 256  # bytes

_NAME = re.compile(rb"[^\s<>{}()\[\]\"'|," + SIGN_CLASS + b"]*+")
_QUOTED_NAME = re.compile(rb'[^"\n' + SIGN_CLASS + b"]*+")
_INSIDE_NAMES = frozenset(b"_-.")  # beside letters and digits
_NO_HEAD = re.compile(rb"[\n{}]")
_JSON_STARTS = frozenset(b'{["-0123456789tfn')
_BRACE = 0x7B


def calls(teller: Teller, plan: Plan, way: Way) -> Steps[bool]:
    """Tell the calls that come next in this way; False, and nothing told, where none does."""
    tape = teller.tape
    kin = [CallReader(teller, plan, one) for one in (way, *way.kin)]
    if not (yield from phrase(tape, way.begin)):
        return False
    if (yield from kin[0].nothing()):
        return True
    if not (yield from _one_of(kin)) and not (yield from _behind_noise(kin)):
        return False
    for reader in kin:
        reader.sure = True
    if not (yield from _more_calls(kin)):
        yield from _close_section(teller, way)
    yield from _stray_ends(kin)
    return True


def _more_calls(kin: Sequence[CallReader]) -> Steps[bool]:
    """Tell the calls that follow the first one; True where the section is closed, or there is none."""
    tape, way = kin[0].tape, kin[0].way
    joins = (way.separator, *way.also_between)
    while True:
        tape.starved = False
        if way.end and (yield from kin[0].takes(way.end)):
            return True
        if not way.begin and joins == ((),):
            return True
        if not (yield from _another(kin, joins)) and not (yield from _noise_in_section(kin)):
            return False


def _noise_in_section(kin: Sequence[CallReader]) -> Steps[bool]:
    """Leave out text between the calls of a section, before the next call or the end of the section."""
    reader = kin[0]
    tape, way = reader.tape, reader.way
    if not way.begin or not way.end:
        return False
    wanted = telling((*(one.way.call_begin[0] for one in kin if one.way.call_begin), *way.end))
    was_cut = tape.starved
    marker = yield from marker_behind(tape, markers(wanted | reader.bars()), wanted)
    tape.starved = was_cut
    if marker not in wanted:
        return False
    reader.teller.diagnose("section", "there is text between the calls of a section; it is left out")
    reader.teller.markup()
    return True


def _stray_ends(kin: Sequence[CallReader]) -> Steps[None]:
    """Leave out what closes calls once more than they were opened."""
    teller, tape = kin[0].teller, kin[0].tape
    words = telling(word for reader in kin for word in reader.closers())
    while words:
        tape.look = tape.at
        yield from space(tape)
        yield from run(tape, _STRAY, MAX_NAME)
        if (yield from one_of(tape, tuple((word,) for word in sorted(words)))) < 0:
            break
        teller.diagnose("call", "the end of a call closes nothing")
        teller.markup()
    tape.look = tape.at


def begins_call(teller: Teller, plan: Plan) -> Steps[bool]:
    """Whether the head of a call comes next, up to the name of the tool; nothing is told."""
    tape = teller.tape
    offset = tape.look - tape.at
    for way in plan.ways:
        tape.look = tape.at + offset
        probes = [_Probe(teller, plan, one) for one in (way, *way.kin)]
        if (yield from phrase(tape, way.begin)) and not (yield from _one_of(probes)):
            yield from _behind_noise(probes)
        if any(probe.would_open for probe in probes):
            return True
    return False


def _one_of(readers: Sequence[CallReader]) -> Steps[bool]:
    """One call, in the first of these ways that fits."""
    tape = readers[0].tape
    offset = tape.look - tape.at
    for reader in readers:
        tape.look = tape.at + offset
        if (yield from reader.call()):
            return True
    return False


def _behind_noise(readers: Sequence[CallReader]) -> Steps[bool]:
    """One call behind a little text that has no place between the start of a section and its first call."""
    tape, way = readers[0].tape, readers[0].way
    if not (way.begin and way.call_begin and way.end and way.trusted):
        return False
    tape.look = tape.at
    yield from phrase(tape, way.begin)
    offset = tape.look - tape.at
    while True:
        seen = tape.data[tape.look : tape.look + MAX_NAME].translate(PLAIN)
        noise, begin, _ = seen.partition(way.call_begin[0])
        if begin or tape.final or len(seen) == MAX_NAME:
            break
        yield
    if not begin or way.end[0] in noise:
        return False
    tape.look = tape.at + offset + len(noise)
    is_call = yield from _one_of(readers)
    if is_call:
        readers[0].teller.diagnose("section", "there is text before the first call of a section; it is left out")
    return is_call


def _another(readers: Sequence[CallReader], joins: tuple[Phrase, ...]) -> Steps[bool]:
    """One more call of a section, behind what joins it to the one before."""
    tape = readers[0].tape
    for join in joins:
        tape.look = tape.at
        if (yield from phrase(tape, join)) and (yield from _one_of(readers)):
            return True
    return False


def _close_section(teller: Teller, way: Way) -> Steps[None]:
    """A section without its whole end: what there is of the end, or of one more call that was cut off, is markup."""
    tape = teller.tape
    was_cut = tape.starved
    tape.look = tape.at
    closed = bool(way.end) and (yield from closing(tape, way.end))
    if was_cut and way.begin:
        tape.look = len(tape.data)
    if way.end and not closed:
        teller.diagnose("section", f"the calls are not closed by {_shown(way.end)}")
    teller.markup()


@lru_cache(maxsize=256)
def _name_between(opening: bytes, sign: bytes) -> re.Pattern[bytes]:
    """A name that ends at a sign, which only names without it can have behind them; in quotes it holds all others."""
    if opening == sign == b'"':
        return _QUOTED_NAME
    if not sign or sign.isalnum() or sign[0] in _INSIDE_NAMES:
        return _NAME
    signs = b":=" if sign == b":" else re.escape(sign)
    return re.compile(rb"[^\s<>{}()\[\]\"'|," + signs + SIGN_CLASS + b"]*+")


def _around(begin: Phrase, end: Phrase) -> tuple[Phrase, ...]:
    """What stands around a call where nothing is inside: all of it, or the outermost tags."""
    return ((*begin, *end), (begin[0], end[-1])) if begin and end else ()


def call_to(teller: Teller, plan: Plan, way: Way, name: str) -> Steps[bool]:
    """Tell a call whose head has been looked at, and whose arguments are JSON."""
    reader = CallReader(teller, plan, way)
    if not reader.opens(name, ""):
        return False
    yield from reader.arguments(None, way.call_end)
    yield from reader.end(way.call_end)
    return True


class CallReader:
    """Reads one call after the other, in one way in which they can be laid out."""

    def __init__(self, teller: Teller, plan: Plan, way: Way) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.plan = plan
        self.way = way
        self.sure = way.trusted  # what comes is a call, whatever its name
        self.left_out: Phrase = ()  # what should stand before the arguments of this call and does not

    def call(self) -> Steps[bool]:
        """One call; False, and nothing told, where none comes next."""
        if self.way.checked and self.plan.tools is not None and not (yield from self._fits()):
            return False
        return (yield from self.read())

    def _fits(self) -> Steps[bool]:
        """Whether its tool could take the call that comes next, or it is cut off: it is read on a tape apart first."""
        tape, start, known = self.tape, self.tape.look - self.tape.at, 0
        trial = _Trial(Teller(Tape(tape.turn_ends)), self.plan, self.way)
        trial.sure = self.sure
        reading = trial.read()
        while True:
            trial.tape.data += tape.data[tape.at + start + known :]
            known = len(tape.data) - tape.at - start
            trial.tape.final, trial.tape.cut = tape.final, tape.cut
            try:
                next(reading)
            except StopIteration as end:
                return bool(end.value) and trial.fits
            if tape.over:
                return True
            yield

    def read(self) -> Steps[bool]:
        """One call, told as it comes."""
        if not (yield from phrase(self.tape, self.way.call_begin)):
            return False
        match self.way.call:
            case JsonCall() as fields:
                known = yield from JsonObject(self, fields).read()
            case KeyedCall():
                known = yield from self._keyed()
            case Head() as shape:
                known = yield from self._headed(shape)
        if not known:
            return False
        head = self.way.call
        if isinstance(head, Head) and head.id_after and (yield from self.takes(head.id_after[0])):
            yield from self._late_id()
            yield from self.end(head.id_after[1])
        else:
            yield from self.end(head.after if isinstance(head, Head) else self.way.call_end)
        return True

    def nothing(self) -> Steps[bool]:
        """Tell a section, or a call, that is closed as soon as it is opened."""
        tape, way = self.tape, self.way
        if not way.trusted or way.broken:
            return False
        offset = tape.look - tape.at
        around = (way.end,) if way.begin else _around(way.call_begin, way.call_end)
        for words in around:
            if words and (yield from phrase(tape, words)):
                self.teller.diagnose("empty", "what stands around calls is empty")
                self.teller.markup()
                return True
            tape.look = tape.at + offset
        return False

    def _late_id(self) -> Steps[None]:
        """The id behind the arguments."""
        call = self.teller.call
        assert call is not None
        yield from space(self.tape)
        written = (yield from run(self.tape, _NAME, MAX_NAME)).decode("utf-8", "replace")
        call.id = self.way.id_template.format(id=written, name=call.name) if written else ""
        self.teller.markup()

    def end(self, after: Phrase) -> Steps[None]:
        """What closes the open call."""
        if after and not (yield from self.takes(after)):
            yield from self._recover(after)
        self.closes()

    def closes(self) -> None:
        """Close the open call, all of which has been told."""
        self.teller.close_call()

    def takes(self, words: Phrase) -> Steps[bool]:
        """Whether these words come next; if so they are told as markup."""
        comes = yield from phrase(self.tape, words)
        if comes:
            self.teller.markup()
        else:
            self.tape.look = self.tape.at
        return comes

    def may_be(self, name: str) -> bool:
        """Whether a name that alone tells a call from prose is that of a tool, as far as the tools are known."""
        return self.sure or self._is_offered(name)

    def _is_offered(self, name: str) -> bool:
        return self.plan.tools is None or self._meant(name) in self.plan.tools

    def _meant(self, name: str) -> str:
        """The tool that is called by a name: one that no tool has may have a namespace before it."""
        tools = self.plan.tools
        if tools is None or name in tools:
            return name
        inner = name.rpartition(".")[2]
        return inner if inner in tools else name

    def opens(self, name: str, id: str) -> bool:
        """Open a call of this name, unless only the name could tell it from prose and no tool has it."""
        meant = self._meant(name)
        known = self._is_offered(name)
        if not known and not self.sure:
            return False
        if not known and self.way.offered_only and not self.plan.keeps_unknown:
            self.teller.diagnose("unknown_tool", f"there is no tool {name!r}; its call is left out")
            self.teller.leave_out_call(name)
            return True
        if not known or meant != name:
            self.teller.diagnose("unknown_tool", f"there is no tool {name!r}" + f"; {meant!r} is taken" * known)
        name = meant
        if self.way.broken:
            self.teller.diagnose("section", f"the call is not opened by {self.way.broken}")
        self.teller.open_call(name, self.way.id_template.format(id=id, name=name) if id else "")
        return True

    def _headed(self, head: Head) -> Steps[bool]:
        """Fields and text up to the arguments, and the arguments in their style."""
        fields = yield from self._fields(head)
        if fields is None:
            return False
        name = written = fields.get(NAME, "")
        if head.style is None and not head.bare and (written.isdecimal() or not written):
            name, fields[ID] = (yield from self._name_from_arguments(written)), written
        if isinstance(head.style, tagged.Tags):
            name = written = head.style.key(written.encode())
        is_over = yield from self._output_is_over(head)
        if not name or (is_over and not self._is_offered(name)) or not self.opens(name, fields.get(ID, "")):
            return False
        if name != written:
            self.teller.diagnose("unknown_tool", f"the call names no tool; its arguments are those of {name!r}")
        if self.left_out:
            self.teller.diagnose("call", f"{_shown(self.left_out)} is missing before the arguments")
            self.left_out = ()
        if head.bare or is_over:
            self.none(is_over)
        else:
            yield from self.arguments(head.style, head.after)
        return True

    def _fields(self, head: Head) -> Steps[dict[Field, str] | None]:
        """What the head of a call says up to its arguments; None where something else comes."""
        fields: dict[Field, str] = {}
        for place, part in enumerate(head.parts):
            if isinstance(part, Field):
                before = head.parts[place - 1] if place else self.way.call_begin
                fields[part] = yield from self._field(before, head.parts[place + 1 : place + 2])
                if not fields[part]:
                    return None
            elif not (yield from self._between(part, place > 0)) and not (yield from self._is_left_out(head, place)):
                return None
        is_marked = bool(head.parts) and isinstance(head.parts[-1], tuple)
        return fields if is_marked or (yield from self._arguments_come(head)) else None

    def _is_left_out(self, head: Head, place: int) -> Steps[bool]:
        """Whether arguments in JSON come next although this part of the head, which stands before them, is missing."""
        if not self.sure or head.style is not None or head.bare or not 0 < place == len(head.parts) - 1:
            return False
        offset = self.tape.look - self.tape.at
        is_object = (yield from peek_behind_space(self.tape)) == _BRACE
        self.tape.look = self.tape.at + offset
        part = head.parts[place]
        self.left_out = part if is_object and isinstance(part, tuple) else ()
        return is_object

    def _name_from_arguments(self, number: str) -> Steps[str]:
        """The tool of a call without a name, or with a number for one: the only one that has these arguments."""
        tools, tape = self.plan.tools or {}, self.tape
        if number in tools or not tools:
            return number
        if number and len(tools) == 1:
            return next(iter(tools))
        offset = tape.look - tape.at
        yield from space(tape)
        start = tape.look - tape.at
        closed = yield from json_text.value(tape)
        keys = _keys(tape.data[tape.at + start : tape.look]) if closed else frozenset()
        tape.look = tape.at + offset
        fitting = [name for name in tools if keys and keys <= self.plan.declared(name).keys]
        return fitting[0] if len(fitting) == 1 else number

    def closers(self) -> Phrase:
        """The words that close a call or its section."""
        after = self.way.call.after if isinstance(self.way.call, Head) else ()
        return (*after, *self.way.call_end, *self.way.end)

    def bars(self) -> frozenset[bytes]:
        """The words behind which nothing belongs to an open call: other calls, and the end of the turn."""
        return telling((*self.way.begin, *self._opening(), *(words[0] for words in self.plan.turn_ends)))

    def _opening(self) -> Phrase:
        """The word with which a call begins; none where that is the name."""
        call = self.way.call
        first = call.parts[0] if isinstance(call, Head) and call.parts else ()
        return (*self.way.call_begin, *(() if isinstance(first, Field) else first))[:1]

    def none(self, is_cut: bool = False) -> None:
        """The open call has no arguments, or the output ends before them."""
        call = self.teller.call
        assert call is not None
        self.teller.json("{}")
        call.whole = not is_cut

    def _field(self, before: Phrase | Field, following: tuple[Phrase | Field, ...]) -> Steps[str]:
        """A name or an id, between what stands before it and what follows it."""
        opening = before[-1][-1:] if isinstance(before, tuple) and before else b""
        phrase = following[0] if following and isinstance(following[0], tuple) else ()
        yield from space(self.tape)
        written = yield from run(self.tape, _name_between(opening, phrase[0][:1] if phrase else b""), MAX_NAME)
        return written.decode("utf-8", "replace")

    def _arguments_come(self, head: Head) -> Steps[bool]:
        """Whether what follows a name without a mark behind it can be arguments, or the end of a call without."""
        starts = (head.style.begin,) if isinstance(head.style, tagged.Tags) else ((b"{",),)
        offset = self.tape.look - self.tape.at
        choice = yield from one_of(self.tape, (*starts, head.after[:1]) if head.after else starts)
        self.tape.look = self.tape.at + offset
        return choice >= 0 or (yield from self._output_is_over(head))

    def _output_is_over(self, head: Head) -> Steps[bool]:
        """Whether nothing comes behind the name of a call that only the end of the output closes."""
        if head.style is not None or head.bare or head.after or self.way.end:
            return False
        offset = self.tape.look - self.tape.at
        choice = yield from one_of(self.tape, self.plan.turn_ends)
        self.tape.look = self.tape.at + offset
        return choice >= 0 or (self.tape.final and self.tape.blank())

    def _between(self, words: Phrase, behind_name: bool) -> Steps[bool]:
        """The text before the next field; behind the name, its last word counts."""
        tape = self.tape
        offset = tape.look - tape.at
        if (yield from phrase(tape, words)):
            return True
        tape.look = tape.at + offset
        if not behind_name or not words or len(words[-1]) < 3 or _NO_HEAD.search(words[-1]):
            return False
        last = words[-1]
        while True:
            seen = tape.data[tape.look : tape.look + MAX_NAME + len(last)].translate(PLAIN)
            between, marker, _ = seen.partition(last)
            if _NO_HEAD.search(between):
                return False
            if marker:
                tape.look += len(between) + len(last)
                return True
            if tape.final or len(seen) == MAX_NAME + len(last):
                return False
            yield

    def _keyed(self) -> Steps[bool]:
        """An object whose key is the name."""
        tape = self.tape
        yield from space(tape)
        if not (yield from literal(tape, b"{")):
            return False
        yield from space(tape)
        name = yield from json_text.string(tape)
        if not name or not (yield from phrase(tape, (b":",))) or not self.opens(name, ""):
            return False
        yield from self.arguments(None, (b"}", *self.way.call_end))
        if not (yield from self.takes((b"}",))):
            self.teller.diagnose("call", "the object of the call is not closed")
        return True

    def arguments(self, style: tagged.Tags | literals.Syntax | quoted.Quotes | None, after: Phrase) -> Steps[None]:
        """The arguments of the open call, up to `after`."""
        teller, call = self.teller, self.teller.call
        assert call is not None
        declared = self.plan.declared(call.name)
        match style:
            case tagged.Tags() if (yield from self._body_is_json(style)):
                teller.diagnose("style", "the arguments are JSON, not marked up")
                whole = yield from self._json(after)
            case tagged.Tags():
                # Where calls begin with their names, text behind an argument may be the next one.
                bars = (*self.bars(), *self.way.end) if self._opening() else None
                whole = yield from tagged.arguments(
                    teller, style, declared, after, self._ends(), bars, self.way.checked
                )
            case literals.Syntax():
                whole = yield from literals.arguments(teller, style, declared, (*after, *self.way.end))
            case quoted.Quotes():
                whole = yield from quoted.arguments(teller, style, declared)
            case _:
                whole = yield from self._json(after)
        call.whole = whole
        if not whole:
            yield from self._skip_broken()

    def _ends(self) -> tuple[Phrase, ...]:
        """What marked-up arguments end at where the call itself is not closed."""
        return tuple(words for words in (self.way.end[:1], *self.plan.turn_ends) if words)

    def _body_is_json(self, style: tagged.Tags) -> Steps[bool]:
        """Whether arguments that should be marked up are a JSON object instead."""
        tape = self.tape
        offset = tape.look - tape.at
        is_object = not style.begin[0].startswith(b"{") and (yield from peek_behind_space(tape)) == _BRACE
        tape.look = tape.at + offset
        return is_object

    def _json(self, after: Phrase) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        offset = tape.look - tape.at
        yield from space(tape)
        if after and (yield from self._comes(after)):
            tape.look = tape.at + offset
            teller.json("{}")  # a call without arguments
            return True
        if (yield from peek(tape)) in _JSON_STARTS:
            teller.markup()
        assert teller.call is not None
        return (yield from json_arguments.arguments(teller, self.plan.declared(teller.call.name), self.way.closers))

    def _comes(self, words: Phrase) -> Steps[bool]:
        offset = self.tape.look - self.tape.at
        comes = yield from phrase(self.tape, words)
        self.tape.look = self.tape.at + offset
        return comes

    def _skip_broken(self) -> Steps[None]:
        """Arguments that make no sense are told as they are written, up to what closes the call."""
        teller, tape = self.teller, self.tape
        call = teller.call
        assert call is not None
        call.broken = True
        tape.look = tape.at
        size = yield from look_for(tape, self.way.closing)
        tape.look -= size
        if isinstance(self.way.call, Head) and self.way.call.style is not None:
            teller.markup()
        else:
            teller.text("tool_call")
        call.whole = size > 0

    def _recover(self, after: Phrase) -> Steps[None]:
        """The end of a call is not as it should be: take what there is of it, also behind stray brackets."""
        teller, tape = self.teller, self.tape
        closed = yield from closing(tape, after)
        kept = tape.look - tape.at
        problem = "is not closed by"
        if not closed and not tape.ends:
            yield from run(tape, _STRAY, MAX_NAME)
            behind = tape.look - tape.at
            closed = behind > kept and (yield from closing(tape, after))
            problem = "has brackets left over before" if closed else problem
            if not closed and not tape.ends:
                tape.look = tape.at + kept
                closed = yield from self._closes_behind_noise(after)
                problem = "has text left over before" if closed else problem
        teller.diagnose("call", f"the call {problem} {_shown(after)}")
        teller.markup()

    def _closes_behind_noise(self, after: Phrase) -> Steps[bool]:
        """Whether the call is closed behind some text that has no place in it; if so, all of that is looked at."""
        own = telling(after)
        kept = self.tape.look - self.tape.at
        if own and (yield from marker_ahead(self.tape, markers(own | self.bars() | telling(self.way.end)))) in own:
            yield from closing(self.tape, after)
            return True
        self.tape.look = self.tape.at + kept
        return False


class _Trial(CallReader):
    """Reads a call to see whether its tool could take it."""

    fits = False

    def closes(self) -> None:
        """Look at the whole call before it is closed."""
        call = self.teller.call
        assert call is not None
        declared = self.plan.declared(call.name)
        keys = _members("".join(call.parts))
        is_good = not call.broken and len(keys) == len(set(keys)) and declared.required <= set(keys)
        self.fits = is_good or not call.whole
        super().closes()


class _Probe(CallReader):
    """Looks at the head of a call and opens none."""

    would_open = False

    def opens(self, name: str, id: str) -> bool:
        """Note that a call of this name would open here."""
        self.would_open = self.may_be(name)
        return False


_STRAY = re.compile(rb"[\s})\]\"';,`]*+")


def _keys(written: bytearray) -> frozenset[str]:
    """The keys of an object in JSON; none where that is something else."""
    try:
        value = from_json(written.translate(PLAIN).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(value) if isinstance(value, dict) else frozenset()


def _members(text: str) -> list[str]:
    """The keys of an object in JSON in the order written, each as often as it is there."""
    members: list[list[str]] = [[]]
    try:
        # The outermost object is the last one to end.
        json.loads(text, object_pairs_hook=lambda pairs: members.append([key for key, _ in pairs]))
    except (ValueError, RecursionError):
        return []
    return members[-1]


def _shown(words: Phrase) -> str:
    return b" ".join(words).decode("utf-8", "replace")
