"""Law 2 (conservation), law 3 (chunk invariance) and law 8 (totality) of response templates, real and random ones."""

from __future__ import annotations

import json
import random
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.response_templates import shapes
from tests.recorded import files

ALPHABET = "ab<\n "
_LEAVES = [".", r"\s", r"\w", "[^a]", "[ab]", "$", "^", r"\b", r"\B", r"\Z", r"\M", "a", "b", "<", "ab", "<a", r"\n"]
_LOOKS = ["(?={})", "(?!{})", "(?<={})", "(?<!{})", "(?>{})", "({})\\1", "(?i:{})"]
_LOOPS = ["*", "+", "?", "*?", "+?", "??", "{1,2}", "*+"]

WORDS = st.text(ALPHABET, min_size=1, max_size=3)
PATTERNS = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(_LOOPS)).map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(st.sampled_from(_LOOKS), inner).map(lambda two: two[0].format(two[1])),
    ),
    max_leaves=5,
)


def delimiters(key: str) -> st.SearchStrategy[dict[str, Any]]:
    literal = st.lists(WORDS, min_size=1, max_size=3).map(lambda words: {key: words})
    return literal | PATTERNS.map(lambda pattern: {f"{key}_pattern": pattern})


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    common = st.fixed_dictionaries(
        {}, optional={"repeats": st.booleans(), "content": st.sampled_from(["text", "json"])}
    )
    fields = {name: draw(delimiters("open")) | draw(delimiters("close") | st.just({})) | draw(common) for name in "xy"}
    if draw(st.booleans()):
        fields["content"] = draw(delimiters("close") | st.just({})) | draw(common)
    return {"start_anchor": "Z", "fields": fields}


class Reading:
    """One way to read an output: all that must not depend on its chunks."""

    def __init__(self, template: Any, chunks: list[str], prefix: str = "", **options: Any) -> None:
        parser = dt.ResponseParser(template, prefix, on_malformed="keep", spans=True, **options)
        events = list(parser.initial_events)
        for chunk in chunks:
            events += parser.feed(chunk)
        self.message, final = parser.finalize()
        self.events = joined(events + final)
        self.unclaimed = "".join(span.text for span in parser.unclaimed)
        self.diagnostics = [(found.problem, found.start) for found in parser.to_message().diagnostics]
        start = parser.template.after_anchor(prefix, 1.0)
        self.text = start + "".join(chunks)
        spans = [(event["start"], event["end"]) for event in events + final]
        spans += [(span.start, span.end) for span in parser.unclaimed]
        self.spans = [(low + len(start), high + len(start)) for low, high in sorted(spans) if low < high]

    def same(self) -> str:
        return repr((self.message, self.events, self.unclaimed, self.diagnostics))


def joined(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with the text of each region in one piece."""
    out: list[dict[str, Any]] = []
    for event in events:
        if out and event["type"] == out[-1]["type"] == "region_chunk":
            out[-1] = out[-1] | {"text": out[-1]["text"] + event["text"], "end": event["end"]}
        else:
            out.append(event)
    return out


def assert_tiles(reading: Reading) -> None:
    """Every character is in exactly one event or unclaimed span."""
    edges = [0, *(high for _, high in reading.spans)]
    assert edges[:-1] == [low for low, _ in reading.spans]
    assert edges[-1] == len(reading.text)


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[low:high] for low, high in pairwise(edges)]


@settings(max_examples=400)
@given(template=templates(), text=st.text(ALPHABET, max_size=14), places=st.lists(st.integers(0, 14), max_size=4))
def test_any_template_reads_any_text_alike_in_any_chunks(
    template: dict[str, Any], text: str, places: list[int]
) -> None:
    try:
        loaded = dt.ResponseTemplate.load(template)
    except dt.ResponseTemplateError:  # an expression that does not compile; trying it earlier would upset the dice
        reject()
    whole = Reading(loaded, [text])
    assert_tiles(whole)
    assert whole.same() == Reading(loaded, list(text)).same()
    assert whole.same() == Reading(loaded, cut(text, places)).same()
    parser = dt.ResponseParser(loaded, "", on_malformed="keep")
    assert whole.message == parser.finalize(text)[0]


EDGES = r"a$ $ a\Z a\b \ba a\B a(?!b) a(?=b) a(?:bb)? ab|a a|ab (?<=a)b a+ a+?b a.*?\b a.*?(?<=a) \s*a ^a".split()


@pytest.mark.parametrize("pattern", EDGES)
def test_what_depends_on_the_text_around_is_read_alike_in_any_chunks(pattern: str) -> None:
    fields = {"x": {"open": "<", "close_pattern": pattern}, "content": {"repeats": True}}
    loaded = dt.ResponseTemplate.load({"start_anchor": "Z", "fields": fields})
    for size in range(1, 5):
        for text in map("".join, product("<", *["ab\n"] * size)):
            whole = dt.parse_response(text, loaded, prefix="")
            for chunks in [list(text), *([text[:at], text[at:]] for at in range(1, size + 2))]:
                reading = Reading(loaded, chunks)
                assert_tiles(reading)
                assert whole == reading.message, chunks


def samples(conformance: Path) -> list[tuple[str, dict[str, Any], str, str]]:
    """Outputs of the real templates, with the prompts that they followed."""
    lines = (conformance / "transformers" / "response_cases.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [
        (case["id"], case["template"], case["prefix"], case["text"])
        for case in found
        if case["id"].startswith("family/")
    ]


def real_templates(conformance: Path) -> dict[str, dict[str, Any]]:
    folder = conformance / "transformers" / "templates"
    return {path.stem: json.loads(path.read_text()) for path in files(folder, "*.json") if path.stem != "INDEX"}


def test_an_output_cut_off_anywhere_is_read_without_an_error_and_keeps_all_its_text(conformance: Path) -> None:
    made = [(name, template, "", "".join(regions(template))) for name, template in real_templates(conformance).items()]
    for name, template, prefix, text in [*samples(conformance), *made]:
        loaded = dt.ResponseTemplate.load(template)
        for end in range(len(text) + 1):
            reading = Reading(loaded, [text[:end]], prefix)
            assert_tiles(reading)
            assert Reading(loaded, cut(text[:end], [end // 3, end // 2]), prefix).same() == reading.same(), name


def test_every_real_template_reads_noise_alike_in_any_chunks(conformance: Path) -> None:
    found = real_templates(conformance)
    assert len(found) == 22
    for name, template in found.items():
        dice = random.Random(name)
        loaded = dt.ResponseTemplate.load(template)
        words = vocabulary(template)
        read: set[str] = set()
        for _ in range(40):
            text = "".join(dice.choices(words, k=dice.randrange(12)))
            whole = Reading(loaded, [text])
            assert_tiles(whole)
            for chunks in (list(text), cut(text, dice.choices(range(len(text) + 1), k=5))):
                assert whole.same() == Reading(loaded, chunks).same(), (name, text)
            read |= whole.message.keys()
        assert template["fields"].keys() <= read, name


def spelled(field: dict[str, Any], key: str) -> str:
    """A delimiter of a field as a model writes it; "" where there is none."""
    if key in field:
        return field[key] if isinstance(field[key], str) else str(field[key][0])
    text = ""
    for part in shapes.spelling([shapes.read(field.get(f"{key}_pattern", ""))]):
        match part:
            case str():
                text += part
            case shapes.Name():
                text += "f"
            case shapes.Gap(low, filler):
                text += filler or " " * low
    return text


def regions(template: dict[str, Any]) -> list[str]:
    """Each field of a template with its delimiters, the one that takes text without them last."""
    fields = sorted(template["fields"].values(), key=lambda field: not spelled(field, "open"))
    bodies = ["x" if field.get("content", "text") == "text" else BODY for field in fields]
    return [spelled(field, "open") + body + spelled(field, "close") for field, body in zip(fields, bodies, strict=True)]


BODY = '{"name": "f", "arguments": {}}'


def vocabulary(template: dict[str, Any]) -> list[str]:
    """The delimiters of a template, whole and in pieces, regions between them, and what else may stand there."""
    words = [spelled(field, key) for field in template["fields"].values() for key in ("open", "close")]
    halves = [word[: len(word) // 2] for word in words] + [word[len(word) // 2 :] for word in words]
    return [*words, *words, *halves, *regions(template), " ", "\n", "x", '{"a": 1}', BODY, "</think>", "<"]


@pytest.mark.parametrize("name", ["held", "max_held"])
def test_held_text_is_bounded_and_given_up_at_the_same_place_in_any_chunks(name: str) -> None:
    template = {"start_anchor": "Z", "fields": {"x": {"open_pattern": "<[^>]*>", "close": "</x>"}, "content": {}}}
    text = "a<" + "b" * 60 + "><x>c</x>" if name == "max_held" else "a<" + "b" * 30 + ">c</x>d"
    whole = Reading(template, [text], max_held=50)
    assert whole.same() == Reading(template, list(text), max_held=50).same()
    assert bool(whole.diagnostics) == (name == "max_held")
    assert_tiles(whole)
