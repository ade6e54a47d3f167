"""How model families mark the arguments of a call: one row of data per style."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("string", "number", "boolean", "null", "object", "array")

Middle = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The markup around one argument: `begin`, the key, what `middle` says for the kind of value, the value, the end.

    The end is `stop`, at which raw text ends, and `tail`, where {} is the key. Whitespace may stand between the parts
    of a middle. Where `item` is given, objects and arrays inside are marked up too, and it takes the place of begin and
    key for an item of an array; elsewhere they are JSON.
    """

    begin: str
    middle: dict[str, Middle]
    stop: str
    tail: str = ""
    item: str = ""
    after_key: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    other_keys: str = "names"  # the keys that a schema need not declare: names, any, or none

    def key(self, name: str) -> str:
        """A key as it stands in the markup."""
        for char, escape in self.escapes:
            name = name.replace(char, escape)
        return name


def _same(*middle: str) -> dict[str, Middle]:
    return dict.fromkeys(KINDS, middle)


def _typed(template: str, names: dict[str, str]) -> dict[str, Middle]:
    return {kind: (template.format(name),) for kind, name in names.items()}


def _deepseek(tag: str) -> Layout:
    is_text = dict.fromkeys(KINDS, "false") | {"string": "true"}
    return Layout(f'<{tag} name="', _typed('" string="{}">', is_text), f"</{tag}>")


_AMPERSAND, _QUOTE = ("&", "&amp;"), ('"', "&quot;")
_COHERE = {"string": "raw", "number": "json", "boolean": "json", "null": "json", "object": "dict", "array": "list"}
_MARK = "]<]minimax[>["

LAYOUTS = {
    "qwen_xml": Layout("<parameter=", _same(">"), "</parameter>"),
    "minimax_xml": Layout('<parameter name="', _same('">'), "</parameter>"),
    "muse_xml": Layout('<atem:parameter name="', _same('">'), "</atem:parameter>"),
    "glm_xml": Layout("<arg_key>", _same("</arg_key>", "<arg_value>"), "</arg_value>"),
    "glm_4_5_xml": Layout("<arg_key>", _same("</arg_key>\n<arg_value>"), "</arg_value>"),
    "deepseek_xml": _deepseek("｜DSML｜parameter"),
    "deepseek_v4_1_xml": _deepseek("｜DSML｜ parameter"),
    "kimi_k3_xml": Layout(
        '<|open|>argument key="',
        _typed('" type="{}"<|sep|>', {kind: kind for kind in (*KINDS, "integer")}),
        "<|close|>argument<|sep|>",
        escapes=(_AMPERSAND, _QUOTE),
    ),
    "cohere_xml": Layout(
        '<cofl:value name="',
        _typed(' type="{}">', _COHERE),
        "</cofl:value>",
        item="<cofl:value",
        after_key='"',
        escapes=(_AMPERSAND, ("<", "&lt;"), (">", "&gt;"), _QUOTE),
        other_keys="any",
    ),
    "minimax_m3_xml": Layout(f"{_MARK}<", _same(">"), _MARK, tail="</{}>", item=f"{_MARK}<item", other_keys="none"),
}
