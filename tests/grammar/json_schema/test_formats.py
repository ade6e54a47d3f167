"""Formats against jsonschema-rs: what a pattern takes is valid, and what is usual is taken."""

from __future__ import annotations

from random import Random

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.grammar import ir
from dovetail.grammar.json_schema.read.formats import FORMATS, UNSUPPORTED
from dovetail.grammar.json_schema.values import strings

CASES = [
    # format, texts that it takes, texts that it does not
    ("date", ["2024-02-29", "2000-02-29", "1963-06-19"], ["2023-02-29", "1900-02-29", "2024-13-01", "24-01-01"]),
    ("time", ["08:30:06Z", "08:30:06.283185+05:45", "23:59:60Z", "01:29:60+01:30"], ["24:00:00Z", "08:30:06"]),
    ("time", ["15:59:60.5-08:00", "00:29:60-23:30", "23:29:60+23:30"], ["22:59:60Z", "23:59:60-08:00", "12:00:61Z"]),
    ("date-time", ["1963-06-19t08:30:06z", "1998-12-31T15:59:60.123-08:00"], ["1998-12-31T23:59:60-08:00"]),
    ("duration", ["P4DT12H30M5S", "P4Y", "P2W", "PT0S"], ["P", "P1YT", "P2D1Y", "P1W2D"]),
    (
        "email",
        ["joe.b@example.com", '"joe b"@example.com', "j@[127.0.0.1]", "j@[IPv6:::1]"],
        ["2962", ".j@example.com"],
    ),
    ("email", ["a" * 64 + "@b.de"], ["a" * 65 + "@b.de", "j..b@example.com", "a@ab--cd.de", 'a"b@c.de']),
    ("idn-email", ["실례@실례.테스트", "δοκιμή@example.com", "user@café.com"], ["a@-é.com", "2962"]),
    (
        "idn-email",
        ["é" * 32 + "@b.de", "a" * 64 + "@b.de", "가" * 21 + "@b.de"],
        ["é" * 33 + "@b.de", "𝕏" * 17 + "@b.de"],
    ),
    (
        "hostname",
        ["www.example.com", "a", "a-b.c1", "a" * 63],
        ["-a", "a-", "a_b", "", "a..b", "xn--x", "ab--c", "a" * 64],
    ),
    ("ipv4", ["192.168.0.1", "0.0.0.0"], ["256.1.1.1", "1.1.1", "01.1.1.1"]),
    ("ipv6", ["::1", "::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"], ["12345::", "1::2::3", "1:2:3:4:5:6:7"]),
    ("uri", ["http://a.b/?x=1#y", "urn:isbn:1", "ldap://[2001:db8::7]/c"], ["//a", "a b:c", "http://a/é", "\\\\x"]),
    ("uri-reference", ["/a", "", "#f", "a/b?c"], ["\\\\x", "a b"]),
    ("uri-template", ["a/{b:1}/{c*}", "{?x,y}", "", "a'b", "é"], ["{", "{}", "{a,}", "{a..b}", "{v:0}", "a b", "{é}"]),
    ("iri", ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a?\ue000"], ["/a", "http://a/\ue000", "http://2001:db8::7 "]),
    ("iri-reference", ["/âππ", "#ƒrägmênt"], ["\\\\WINDOWS", "#ƒräg\\mênt"]),
    ("uuid", ["2EB8AA08-AA98-11EA-B4AA-73B441D16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
    ("json-pointer", ["", "/a~0b/~1", "/"], ["a", "/~", "/~2"]),
    ("relative-json-pointer", ["0#", "1/a", "10"], ["/a", "01", "-1"]),
]


def valid(name: str, text: str) -> bool:
    return jsonschema_rs.validator_for({"format": name}, validate_formats=True).is_valid(text)


def takes(name: str, text: str) -> bool:
    return accepts(ir.Rule("root", strings.language((FORMATS[name],), 0, None)), text)


@pytest.mark.parametrize(("name", "yes", "no"), CASES)
def test_a_format_takes_its_texts_and_no_others(name: str, yes: list[str], no: list[str]) -> None:
    assert yes == [text for text in yes if takes(name, text)]
    assert [] == [text for text in no if takes(name, text)]
    assert yes == [text for text in yes if valid(name, text)]


def test_every_format_is_either_held_or_named_as_unsupported() -> None:
    assert FORMATS.keys() == {name for name, _, _ in CASES}
    assert not FORMATS.keys() & UNSUPPORTED


def spoken(dice: Random, node: ir.Node) -> str:
    """A text of a node, with characters from the edges of their classes."""
    match node:
        case ir.Lit(data):
            return data.decode()
        case ir.Chars(ranges):
            return chr(dice.choice(dice.choice(ranges)))
        case ir.Seq(parts):
            return "".join(spoken(dice, part) for part in parts)
        case ir.Alt(parts):
            return spoken(dice, dice.choice(parts))
        case ir.Repeat(body, low, high):
            most = low + 2 if high is None else high
            return "".join(spoken(dice, body) for _ in range(dice.choice((low, dice.randint(low, most), most))))
        case ir.Call(rule):
            return spoken(dice, rule.body)
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(dice=st.randoms(use_true_random=False), extra=st.sampled_from(["", "0", "-", ".", ":", "é", "@", "/", "%"]))
def test_whatever_a_format_takes_is_valid(name: str, dice: Random, extra: str) -> None:
    text = spoken(dice, strings.language((FORMATS[name],), 0, None))
    assert takes(name, text)
    at = dice.randint(0, len(text))
    for one in (text, text[:at] + extra + text[at + 1 :]):
        if takes(name, one):
            assert valid(name, one), one
