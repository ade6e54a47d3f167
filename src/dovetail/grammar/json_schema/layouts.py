"""How model families mark the arguments of a call: one row of data per style."""

from __future__ import annotations

from dovetail.formats.styles import KINDS, Layout, Middle

__all__ = ["KINDS", "LAYOUTS", "Layout", "Middle", "layout_of"]


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


def layout_of(style: str | Layout) -> Layout:
    """A style by its name, or itself."""
    return LAYOUTS[style] if isinstance(style, str) else style
