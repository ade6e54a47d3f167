"""The contract of a run: what `--json-schema` may be, and what fits it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.contract import Contract, ContractError, make_contract, read_contract
from dovetail.agent.contract.root import accepts_object
from dovetail.agent.contract.source import MAX_FILE_BYTES
from dovetail.agent.types import REDACTED_ARGUMENTS

S1 = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
HERE = Path("/")


def refusal(raw: str, directory: Path = HERE, **options: Any) -> str:
    with pytest.raises(ContractError) as caught:
        read_contract(raw, directory, **options)
    return str(caught.value)


def test_an_accepted_schema_is_used_unchanged() -> None:
    assert S1 == read_contract(json.dumps(S1), HERE).parameters


def test_a_file_is_read_relative_to_the_launch_directory_and_to_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.json").write_text('{"type": "object"}')
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {"type": "object"} == read_contract("@s.json", tmp_path).schema
    assert {"type": "object"} == read_contract(" @~/s.json ", HERE).schema


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_bytes(b"{}" + b" " * (MAX_FILE_BYTES - 2))
    assert {} == read_contract(f"@{file}", HERE).schema
    file.write_bytes(b"{}" + b" " * (MAX_FILE_BYTES - 1))
    assert "is 4194305 bytes (>4194304). Refusing to read" in refusal(f"@{file}")


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "must be a regular file" in refusal(f"@{tmp_path / 'pipe'}")
    assert "must be a regular file" in refusal(f"@{tmp_path}")
    assert "could not read" in refusal("@no/such", tmp_path)


def test_nothing_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET_TOKEN hello")
    told = refusal("@secret", tmp_path)
    assert "is not valid JSON" in told
    assert "TOKEN" not in told
    assert "hello" not in told


SLIPS = [
    # argument, words of the refusal
    ("", "cannot be empty"),
    ("{not json}", "is not valid JSON: "),
    ("[" * 100_000, "is not valid JSON: "),
    ('{"minimum": NaN}', "NaN is not JSON"),
    ("null", "must be a JSON object"),
    ('{"type": "object", "propertees": {}}', 'unknown keyword "propertees" (did you mean "properties"?)'),
    (
        '{"properties": {"a": {"minLenght": 1}}}',
        '(did you mean "minLength"?)\n  at   /properties/a\n  fix  correct the keyword',
    ),
    ('{"unevaluatedProperties": false}', "2020-12"),
    ('{"properties": {"a/b": {"type": "strin"}}}', "/properties/a/b/type"),
    ('{"properties": {"a": {"if": {}}}}', '"if" without "then" and "else"'),
    ('{"required": ["a"], "properties": {"a": {"$ref": "#/properties/a/properties/b"}}}', "does not exist"),
    ('{"required": ["a"], "properties": {"a": {"$ref": "#"}}}', "cannot be satisfied"),
    (
        '{"properties": {"n": {"minimum": 3, "maximum": 2, "type": "integer"}}, "required": ["n"]}',
        "cannot be satisfied",
    ),
]


@pytest.mark.parametrize(("raw", "words"), SLIPS)
def test_a_slip_is_named(raw: str, words: str) -> None:
    assert words in refusal(raw)


def test_unknown_keywords_can_be_allowed_and_are_then_remarked_on() -> None:
    contract = make_contract({"type": "object", "x-order": 1}, allow_unknown=True)
    assert ('--json-schema: unknown keyword "x-order" at /',) == contract.warnings


def test_root_references_are_followed_through_escapes_and_cycles() -> None:
    target = {"a/b~c": {"type": "object"}, "s": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}
    assert accepts_object({"$ref": "#/$defs/a~1b~0c", "$defs": target})
    assert accepts_object({"$ref": "#/%24defs/a~1b~0c", "$defs": target})
    assert not accepts_object({"$ref": "#/$defs/s", "$defs": target})
    assert accepts_object({"$ref": "#/$defs/loop", "$defs": target})


def test_branches_that_multiply_are_walked_in_bounded_time() -> None:
    layers = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 4} for i in range(100)}
    assert accepts_object({"$ref": "#/$defs/d0", "$defs": {**layers, "d100": {"type": "string"}}})


ROOTS: list[tuple[dict[str, Any], Any, Any]] = [
    # schema, a value that fits, one that does not
    ({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}, [1, 2], ["x"]),
    ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]], [1]),
    ({"type": "string", "minLength": 2}, "ok", "k"),
    ({"enum": [1, None]}, None, 2),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}], "type": "array"}, [None], [1]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), ROOTS)
def test_any_root_can_be_wrapped_for_the_tool_and_unwrapped_for_the_output(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    assert "--wrap-root" in refusal(json.dumps(schema))
    contract = make_contract(schema, wrap_root=True)
    assert good == contract.check({"value": good}).value
    assert not contract.check({"value": good}).findings
    assert contract.check({"value": bad}).findings
    assert contract.check({"value": good, "more": 1}).findings
    # The wrapper is a schema by itself, and says the same.
    outer = make_contract(contract.parameters)
    assert not outer.check({"value": good}).findings
    assert outer.check({"value": bad}).findings


def test_all_findings_come_at_once_with_pointer_value_and_what_is_allowed() -> None:
    contract = make_contract(
        {
            "type": "object",
            "properties": {
                "risk": {"enum": ["low", "high"]},
                "n": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "string", "maxLength": 3}},
                "either": {"anyOf": [{"type": "null"}, {"type": "object"}]},
            },
            "required": ["summary"],
            "patternProperties": {"^s": {}},
            "additionalProperties": False,
        }
    )
    checked = contract.check({"risk": "medium", "n": 1.5, "list": ["ok", "long"], "either": 7, "q": 1})
    told = checked.explained()
    for words in (
        'params/risk: "medium" is not one of the allowed values: ["low", "high"]',
        "params/n: 1.5 must be integer",
        'params/list/1: "long" is longer than 3 characters',
        "params/either: 7 fits none of the alternatives",
        'params: the required property "summary" is missing',
        "'q' was unexpected",
    ):
        assert words in told
    for value in ("medium", "1.5", "long", "'q'"):
        assert value not in checked.recorded()


def test_long_values_are_cut_in_findings_and_many_findings_are_counted() -> None:
    contract = make_contract({"type": "object", "additionalProperties": {"type": "integer"}})
    told = contract.check({f"k{i}": "x" * 10_000 for i in range(50)}).explained()
    assert len(told) < 10_000
    assert "and 47 more like this one" in told


def test_findings_that_are_alike_hide_no_others() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"]}
    properties = {"points": {"type": "array", "items": point}, "risk": {"enum": ["low", "high"]}}
    schema = {"type": "object", "properties": properties, "required": ["risk", *(f"r{i}" for i in range(18))]}
    told = make_contract(schema).check({"points": [{"x": "no", "z": 1}] * 40, "risk": "medium"}).explained()
    assert '"medium" is not one of the allowed values' in told
    assert 'the required property "y" is missing' in told
    assert "params/points/2/x: " in told
    assert "params/points/3/x: " not in told
    assert 2 == told.count("and 37 more like this one")
    assert len(told.splitlines()) < 40


REPAIRS: list[tuple[dict[str, Any], Any, Any]] = [
    # schema of the property, as the model wrote it, as it is emitted
    ({"type": "integer"}, "3", 3),
    ({"type": "integer"}, "3.0", 3),
    ({"type": "number"}, "-2.5", -2.5),
    ({"type": "boolean"}, "TRUE", True),
    ({"type": "string"}, 5, "5"),
    ({"type": "string"}, True, "true"),
    ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
    ({"type": "object", "required": ["a"]}, '{"a": 1}', {"a": 1}),
    ({"$ref": "#/$defs/n"}, "3", 3),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
]


@pytest.mark.parametrize(("schema", "written", "emitted"), REPAIRS)
def test_a_misspelled_type_is_repaired_and_the_repaired_value_is_what_counts(
    schema: dict[str, Any], written: Any, emitted: Any
) -> None:
    contract = make_contract({"properties": {"p": schema}, "$defs": {"n": {"type": "integer"}}})
    checked = contract.check({"p": written})
    assert ({"p": emitted}, ()) == (checked.value, checked.findings)
    assert checked.repairs


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer"}, "3.5"),
        ({"type": "integer"}, "3x"),
        ({"type": "boolean"}, "yes"),
        ({"type": "object"}, "{broken"),
        ({"type": "string", "minLength": 3}, 5),
        ({"type": "null"}, "null"),
    ],
)
def test_what_is_more_than_misspelled_is_not_repaired(schema: dict[str, Any], written: Any) -> None:
    assert make_contract({"properties": {"p": schema}}).check({"p": written}).findings


def test_known_formats_are_enforced_and_unknown_ones_are_not() -> None:
    contract = make_contract({"properties": {"m": {"format": "email"}, "x": {"format": "made-up"}}})
    assert contract.check({"m": "not an address", "x": "anything"}).findings
    assert not contract.check({"m": "a@b.example", "x": "anything"}).findings


def test_the_placeholder_of_an_earlier_answer_is_no_answer() -> None:
    contract = make_contract({})
    assert "placeholder" in contract.check(REDACTED_ARGUMENTS).explained()
    assert contract.check({"__redacted": "anything else"}).findings
    assert not contract.check({}).findings


def test_hostile_patterns_are_matched_in_linear_time_or_bounded() -> None:
    for pattern in ("^(a+)+$", "^(?=a)(a|aa)+$"):
        contract = make_contract({"properties": {"s": {"type": "string", "pattern": pattern}}})
        assert contract.check({"s": "a" * 50_000 + "b"}).findings
        assert not contract.check({"s": "aa"}).findings


def test_values_nested_too_deeply_are_findings_and_no_crash() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    assert make_contract({}).check({"v": value}).findings


def test_the_callers_own_check_speaks_to_the_model() -> None:
    def positive(value: Any) -> None:
        if value["n"] < 0:
            raise ValueError("n must not be negative")

    contract = make_contract({"properties": {"n": {"type": "integer"}}, "required": ["n"]}, validate=positive)
    assert "n must not be negative" in contract.check({"n": -1}).explained()
    assert not contract.check({"n": 1}).findings


SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": "integer"}, {"type": "string"}, {"type": "boolean"}, {"type": "number"}, {"enum": ["1", 2]}, {}, True]
    ),
    lambda inner: st.one_of(
        st.builds(lambda s: {"type": "array", "items": s}, inner),
        st.builds(lambda s, t: {"anyOf": [s, t]}, inner, inner),
        st.builds(
            lambda p, r: {"type": "object", "properties": p, "required": sorted(p)[:r]},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.integers(0, 2),
        ),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 1, 1.5, "1", "true", "x", "[1]", '{"a": "2"}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def contract_of(schema: Any) -> Contract:
    return make_contract({"type": "object", "properties": {"v": schema}})


@given(schema=SCHEMAS, value=VALUES)
def test_what_is_taken_is_valid_by_an_independent_validator(schema: Any, value: Any) -> None:
    import jsonschema

    contract = contract_of(schema)
    checked = contract.check({"v": value})
    if not checked.findings:
        for validator in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
            validator(contract.schema).validate(checked.value)


@given(schema=SCHEMAS, value=VALUES)
def test_what_is_valid_is_taken_as_it_is(schema: Any, value: Any) -> None:
    import jsonschema

    contract = contract_of(schema)
    if jsonschema.Draft202012Validator(contract.schema).is_valid({"v": value}):
        checked = contract.check({"v": value})
        assert ({"v": value}, (), ()) == (checked.value, checked.findings, checked.repairs)
