"""Templates that no model has: whatever their layout, it is found."""

from __future__ import annotations

import pytest

from dovetail.layouts.styles import PYTHON_DICT, Literals
from dovetail.parsing.layouts import ID, JsonCall, KeyedCall, TaggedCall
from dovetail.templates.analysis import analyze_template
from dovetail.templates.analysis.probes import Prober
from dovetail.templates.analysis.verify import PROBES, verifier_of
from tests.templates.synthetic import Spec, spec

MODES = {
    "none": "NONE",
    "tags": "TAG_BASED",
    "opened": "FORCED_OPEN",
    "opened or closed": "FORCED_CLOSED",
    "tools only": "TOOLS_ONLY",
    "delimiter": "DELIMITER",
}
FORMATS = {
    "json": "JSON_NATIVE",
    "json array": "JSON_NATIVE",
    "nested json": "JSON_NATIVE",
    "keyed": "JSON_NATIVE",
    "tag with json": "TAG_WITH_JSON",
    "fenced": "TAG_WITH_JSON",
    "dict": "TAG_WITH_JSON",
    "tagged": "TAG_WITH_TAGGED",
    "key tags": "TAG_WITH_TAGGED",
    "attributes": "TAG_WITH_TAGGED",
    "named tags": "TAG_WITH_TAGGED",
    "python": "TAG_WITH_TAGGED",
    "quoted literals": "TAG_WITH_TAGGED",
}
CONTENT = {"plain": "PLAIN", "wrapped": "ALWAYS_WRAPPED", "wrapped with reasoning": "WRAPPED_WITH_REASONING"}


def check(made: Spec) -> None:
    """Everything that the template writes is found, accepted and read back."""
    source = made.source
    analysis = analyze_template(source)
    dialect, modes = analysis.dialect, analysis.modes
    assert modes.reasoning == MODES[made.reasoning]
    assert modes.content == CONTENT[made.content]
    assert modes.tools == FORMATS[made.layout]
    if made.reasoning != "none":
        assert dialect.reasoning is not None
        assert (dialect.reasoning.start.strip(), dialect.reasoning.end) == made.think
    if made.content != "plain":
        assert (dialect.content.begins[0].strip(), dialect.content.ends[0]) == made.answer
    way = dialect.calls[0]
    if made.section:
        assert way.begin.startswith(made.opening[0])
        assert way.end.endswith(made.opening[1])
    check_call(made, way.call)
    rows = list(verifier_of(analysis, Prober(source)).verify(PROBES))
    assert [(row.feature, row.problem) for row in rows if not row.passed] == []
    assert {"content", "one call", "parallel calls", "content and calls"} <= {row.feature for row in rows}


def check_call(made: Spec, call: JsonCall | KeyedCall | TaggedCall) -> None:
    match made.layout:
        case "json" | "json array" | "nested json":
            assert isinstance(call, JsonCall)
            assert call.inside == ("function" if made.layout == "nested json" else "")
            keys = [key for key, _ in call.fields if key != made.keys[2]]
            assert keys == list(made.keys[:2])
            if made.layout != "nested json":
                assert (made.ids != "none") == (ID in [value for _, value in call.fields])
        case "keyed":
            assert isinstance(call, KeyedCall)
        case "dict":
            assert isinstance(call, TaggedCall)
            assert call.arguments == PYTHON_DICT
        case "python" | "quoted literals":
            assert isinstance(call, TaggedCall)
            assert isinstance(call.arguments, Literals)
        case "tag with json":
            assert isinstance(call, TaggedCall)
            assert (made.ids != "none" or made.named) == (ID in call.parts)


# Nested JSON over several lines; a header that a sentinel touches; white space before content, and before calls in
# blocks that begin like turns, where the header is torn.
MENDED = (218, 229, 258, 100, 292, 246, 406, 217)


@pytest.mark.parametrize("seed", [*range(60), *MENDED])
def test_the_layout_of_a_synthetic_template_is_found(seed: int) -> None:
    check(spec(seed))
