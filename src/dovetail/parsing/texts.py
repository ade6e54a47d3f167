"""Free text on the tape, up to the marker that ends it."""

from __future__ import annotations

import re

from dovetail.parsing.events import Region
from dovetail.parsing.stops import Stops, marker_size
from dovetail.parsing.tape import Steps, Tape
from dovetail.parsing.teller import Teller


def free_text(teller: Teller, region: Region, stops: Stops) -> Steps[int]:
    """Tell text up to the first stop and look at the stop: how long it is without the space before it; 0 at the end."""
    tape = teller.tape
    while True:
        stop = stops.find.search(tape.data, tape.at)
        if stop:
            tape.look = stop.start()
            teller.text(region)
            tape.look = stop.end()
            return marker_size(stop)
        tape.look = len(tape.data) if tape.final else stops.held(tape.data, tape.at)
        teller.text(region)
        if tape.final:
            return 0
        teller.let_pass(stops.quick, region)
        yield
        teller.passes = None


def escaped_text(teller: Teller, stops: Stops, passes: re.Pattern[str]) -> Steps[bool]:
    """Tell raw text as the inside of a JSON string up to a stop, and look at the stop; False at the end."""
    tape = teller.tape
    while True:
        stop = stops.find.search(tape.data, tape.at)
        if stop:
            tape.look = stop.start()
            teller.escaped()
            tape.look = stop.end()
            return True
        held = before_half(tape, stops) if tape.final else stops.held(tape.data, tape.at)
        tape.look = min(held, tape.before_turn_end())
        teller.escaped()
        if tape.final:
            return False
        teller.let_pass(passes, "tool_call")
        yield
        teller.passes = None


def before_half(tape: Tape, stops: Stops) -> int:
    """Where text ends that the output ends in: before two characters or more that begin a stop."""
    held = stops.held(tape.data, tape.at)
    return held if len(tape.data) - held > 1 else len(tape.data)


def look_for(tape: Tape, stops: Stops) -> Steps[int]:
    """Look at everything up to and with the next stop: the length of the stop, or 0 at the end."""
    while True:
        stop = stops.find.search(tape.data, tape.look)
        if stop:
            tape.look = stop.end()
            return stop.end() - stop.start()
        tape.look = len(tape.data) if tape.final else stops.held(tape.data, tape.look)
        if tape.final:
            return 0
        yield
