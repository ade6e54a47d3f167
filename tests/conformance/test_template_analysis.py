"""What llama.cpp's analyzer finds in real chat templates, beside what ours finds.

Markers are compared without white space. Where theirs leaves a field empty because it draws the line elsewhere (a name
prefix that ours counts to the beginning of the call), the joined text is compared.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dovetail.dialects import Dialect, JsonCall, KeyedCall, TaggedCall
from dovetail.dialects.format_builder import call_pieces
from dovetail.layouts.styles import Layout
from dovetail.parsing.layouts import NAME
from dovetail.templates.analysis import Analysis, analyze_template

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["template_analysis"]


def bare(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def theirs(found: dict[str, Any]) -> dict[str, Any]:
    """What their analyzer found, in the words of the comparison."""
    tools, function, arguments = found["tool_format"], found["function"], found["arguments"]
    facts = {
        "reasoning": (bare(found["reasoning"]["start"]), bare(found["reasoning"]["end"])),
        "content": (bare(found["content"]["start"]), bare(found["content"]["end"])),
        "format": tools["mode"],
        "id": found["call_id"]["pos"],
    }
    match tools["mode"]:
        case "JSON_NATIVE":
            facts["opening"] = bare(tools["section_start"] + tools["per_call_start"])
            facts["closing"] = bare(tools["per_call_end"] + tools["section_end"])
            facts["keys"] = [] if tools["fun_name_is_key"] else tools["parameter_order"]
            facts["array"] = tools["tools_array_wrapped"]
        case "TAG_WITH_JSON" | "TAG_WITH_TAGGED":
            facts["opening"] = bare(tools["section_start"] + tools["per_call_start"] + function["name_prefix"])
            facts["closing"] = bare(function["close"] + tools["per_call_end"] + tools["section_end"])
    if tools["mode"] == "TAG_WITH_TAGGED":
        middle = arguments["name_suffix"] + arguments["value_prefix"]
        facts["argument"] = bare("|".join((arguments["name_prefix"], middle, arguments["value_suffix"])))
    return facts


def ours(analysis: Analysis) -> dict[str, Any]:
    """What our analyzer found, in the same words."""
    dialect, modes = analysis.dialect, analysis.modes
    reasoning, content = dialect.reasoning, dialect.content
    facts: dict[str, Any] = {
        "reasoning": (bare(reasoning.start), bare(reasoning.end)) if reasoning else ("", ""),
        "content": (bare(content.begins[0]), bare(content.ends[0])),
        "format": modes.tools,
        "id": modes.call_id if modes.tools != "JSON_NATIVE" else "NONE",
    }
    return facts | (_calls(dialect) if modes.tools != "NONE" else {})


def _calls(dialect: Dialect) -> dict[str, Any]:
    way = dialect.calls[0]
    pieces = call_pieces(way.call)
    closing = bare(way.call_end + way.end)
    if isinstance(way.call, JsonCall | KeyedCall):
        array = way.begin.rstrip().endswith("[")
        opening = bare(way.begin).removesuffix("[") if array else bare(way.begin)
        keys = [key for key, _ in way.call.fields] if isinstance(way.call, JsonCall) else []
        return {
            "opening": opening + bare(way.call_begin),
            "closing": closing.removeprefix("]") if array else closing,
            "keys": keys,
            "array": array,
        }
    assert isinstance(way.call, TaggedCall)
    before = "".join(str(piece) for piece in pieces[: pieces.index(NAME)] if isinstance(piece, str))
    facts = {"opening": bare(way.begin + way.call_begin + before), "closing": closing}
    style = way.call.arguments
    if isinstance(style, Layout):
        facts["argument"] = bare("|".join((style.begin, "".join(style.middle["string"]), style.stop)))
    return facts


def test_markers_agree_with_those_of_another_analyzer_but_for_listed_differences(conformance: Path) -> None:
    recorded = json.loads((conformance / "llama_cpp" / "template_analysis.json").read_text())
    found: dict[str, str] = {}
    for name, record in recorded.items():
        analysis = analyze_template((conformance / "llama_cpp" / "templates" / name).read_text())
        left, right = theirs(record["analysis"]), ours(analysis)
        differing = [key for key in left if left[key] != right.get(key)]
        if differing:
            found[name.removesuffix(".jinja")] = " ".join(differing)
    assert {name: row["fields"] for name, row in DIFFERENCES.items()} == found
