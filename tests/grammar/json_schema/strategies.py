"""Random schemas of the supported keywords, and random values that have a chance to satisfy them."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import ir, json_schema

NAMES = ["a", "b", "c", "ab"]
OTHER_NAMES = ["x", "x_1", ""]
PATTERNS = ["^a", "b$", "^[ab]*$", "a|é", "^.{2}$", "[^a]", r"\d", "^(ab|c)+$"]

texts = st.one_of(
    st.sampled_from(["", "a", "b", "ab", "abc", "é", "a1", '"', "\\", "\n", "😀", "c😀"]), st.text(max_size=4)
)
numbers = st.one_of(
    st.integers(-12, 12), st.sampled_from([0.5, -0.5, 2.5, 9.99, 10.5, -3.25, 100, 10000000000, 123456789012345678901])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES + OTHER_NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


def _some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these keys."""
    return st.fixed_dictionaries({}, optional=keywords)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _some(
        properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        required=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        additionalProperties=st.one_of(st.booleans(), inner),
        minProperties=st.integers(0, 2),
        maxProperties=st.integers(0, 3),
        patternProperties=st.dictionaries(st.sampled_from(["^a", "^x_", "b$"]), inner, max_size=1),
        propertyNames=st.sampled_from([{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "x"]}]),
        dependentRequired=st.just({"a": ["b"]}),
        dependentSchemas=st.fixed_dictionaries({"b": inner}),
        unevaluatedProperties=st.one_of(st.booleans(), inner),
    ).map(lambda schema: {"type": "object", **schema})


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _some(
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        minItems=st.integers(0, 2),
        maxItems=st.integers(0, 3),
        contains=inner,
        minContains=st.integers(0, 2),
        maxContains=st.integers(1, 2),
        unevaluatedItems=st.one_of(st.booleans(), inner),
    ).map(lambda schema: {"type": "array", **schema})


_leaves = st.one_of(
    st.booleans(),
    st.sampled_from(["null", "boolean", "number", "integer", "string"]).map(lambda name: {"type": name}),
    st.lists(st.sampled_from(["null", "integer", "string", "object"]), min_size=1, max_size=2, unique=True).map(
        lambda names: {"type": names}
    ),
    st.lists(scalars, min_size=1, max_size=4).map(lambda found: {"enum": found}),
    values.map(lambda value: {"const": value}),
    _some(minLength=st.integers(0, 2), maxLength=st.integers(0, 4), pattern=st.sampled_from(PATTERNS)),
    _some(minimum=numbers, maximum=numbers, exclusiveMinimum=numbers, exclusiveMaximum=numbers),
    _some(minimum=numbers, maximum=numbers).map(lambda schema: {"type": "integer", **schema}),
    _some(minimum=numbers, multipleOf=st.sampled_from([2, 0.5, 3, 2.5])).map(
        lambda schema: {"type": "number", **schema}
    ),
    # Below a member, so that no reference leads back to itself without a value in between.
    st.just({"type": "array", "items": {"$ref": "#/$defs/d"}}),
    st.just({"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"$ref": "#/$defs/e"}}}),
)
_references = st.just({"$ref": "#/$defs/e"})


def _unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    arms = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        arms.map(lambda found: {"anyOf": found}),
        arms.map(lambda found: {"allOf": found}),
        st.tuples(arms, _leaves.filter(lambda leaf: isinstance(leaf, dict))).map(
            lambda pair: {"anyOf": pair[0], **pair[1]}
        ),
        st.lists(inner, min_size=2, max_size=3).map(lambda found: {"oneOf": found}),
        inner.map(lambda schema: {"not": schema}),
        st.tuples(inner, inner, inner).map(lambda found: {"if": found[0], "then": found[1], "else": found[2]}),
        st.tuples(arms, _objects(inner)).map(lambda pair: {"anyOf": pair[0], **pair[1]}),
        st.tuples(arms, _arrays(inner)).map(lambda pair: {"anyOf": pair[0], **pair[1]}),
    )


def _bodies(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    nested = st.recursive(
        leaves, lambda inner: st.one_of(_objects(inner), _arrays(inner), _unions(inner)), max_leaves=6
    )
    return nested.map(lambda schema: schema if isinstance(schema, dict) else {"allOf": [schema]})


schemas = st.tuples(_bodies(st.one_of(_leaves, _references)), _bodies(_leaves), _bodies(_leaves)).map(
    lambda found: {**found[0], "$defs": {"d": found[1], "e": found[2]}}
)


def lowered(schema: Any, **options: Any) -> ir.Rule:
    """The root rule, for schemas that are not refused: random ones are often contradictory."""
    try:
        return ir.Rule("root", json_schema.lower(schema, **options))
    except (SchemaError, LimitError):
        assume(False)
        raise
