"""Renders are compared without tearing a marker or a word."""

from __future__ import annotations

import pytest

from dovetail.templates.analysis.diff import (
    ListLayout,
    list_layout,
    markers,
    segments,
    shared_end,
    shared_start,
    user_header,
)

SHARED = [
    # two texts, the start that they share, the end that they share
    ("<a>x</a>", "<a>y</a>", "<a>", "</a>"),
    ("<tool_call>\n{", "<tool_sep>\n{", "", "\n{"),
    ("assistant: yes", "assistance: yes", "", ": yes"),
    ("<|im_end|>\n<|im_start|>", "<|im_end|>\n", "<|im_end|>\n", ""),
    ("[CALL]f", "[ARGS]f", "", "f"),
    ("same", "same", "same", "same"),
    ("", "x", "", ""),
    ("roleZqcontentq", "roleZqreasoningq", "role", ""),  # a sentinel is no part of the word before it
]
LISTS = [
    # before, between and after the items
    ("<c>{", "}</c>\n<c>{", "}</c>", ListLayout("", "<c>{", "}</c>", "\n", "")),
    ("<s>[{", "}, {", "}]</s>", ListLayout("<s>[", "{", "}", ", ", "]</s>")),
    (">\n<p=", "</p>\n<p=", "</p>\n</f>", ListLayout(">\n", "<p=", "</p>", "\n", "\n</f>")),
    ("(", ", ", ")", ListLayout("(", "", "", ", ", ")")),
    # A marker that both would take opens the next item, unless the item would end in the middle of a tag.
    ('"><m><', "<m></k><m><", "<m></k><m></f>", ListLayout('">', "<m><", "<m></k>", "", "<m></f>")),
    ("i<s><o>k", "<c>a<s><o>k", "<c>a<s><c>b", ListLayout("i<s>", "<o>k", "<c>a<s>", "", "<c>b")),
]


@pytest.mark.parametrize(("left", "right", "start", "end"), SHARED)
def test_what_two_texts_share_tears_nothing(left: str, right: str, start: str, end: str) -> None:
    assert (start, end) == (shared_start(left, right), shared_end(left, right))


@pytest.mark.parametrize(("before", "between", "after", "expected"), LISTS)
def test_the_layout_of_a_list_is_found(before: str, between: str, after: str, expected: ListLayout) -> None:
    found = list_layout(before, between, after)
    assert expected == found
    assert found.open + found.begin == before
    assert found.end + found.separator + found.begin == between
    assert found.end + found.close == after


def test_without_a_second_item_everything_is_the_items_own() -> None:
    assert ListLayout("", "<c>", "</c></s>", "", "") == list_layout("<c>", None, "</c></s>")


def test_markers_and_segments() -> None:
    text = "<|a|>word [B] ]<]m[>[<x y=\"1\"> {'a': [1]}"
    assert markers(text) == ["<|a|>", "[B]", "]<]m[>[", '<x y="1">']
    assert "".join(segments(text)) == text


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("<|im_end|>\n<|im_start|>user\n", "<|im_start|>user\n"),
        ("<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n", "<|start_header_id|>user<|end_header_id|>\n\n"),
        ("<|end|>\n<|user|>\n", "<|user|>\n"),
        ("\n\nUSER: ", "USER: "),
        ("</s>[INST] ", "</s>[INST] "),
    ],
)
def test_the_header_of_a_user_begins_behind_the_end_of_the_turn_before(text: str, header: str) -> None:
    assert header == user_header(text)
