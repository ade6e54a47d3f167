"""What the source of a template tells without rendering: its variables, what they are compared with, its texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import nodes

from dovetail.templates.analysis.diff import markers
from dovetail.templates.render import syntax_tree

# What Transformers passes to every template, and what a conversation is made of.
_STANDARD = frozenset(
    "messages tools documents add_generation_prompt bos_token eos_token unk_token pad_token continue_final_message"
    " raise_exception strftime_now range dict lipsum cycler joiner namespace loop tools_in_user_message"
    " builtin_tools custom_tools available_tools date_string controls".split()
)
_MAX_CONSTANTS = 64


@dataclass(frozen=True, slots=True)
class Source:
    """Facts about a template."""

    variables: tuple[tuple[str, tuple[str, ...]], ...]  # those a caller may set, with the texts they are compared with
    markers: tuple[str, ...]  # the markers among its texts
    texts: str  # everything that it may write, in one piece


@lru_cache(maxsize=16)
def read_source(source: str) -> Source:
    """The facts of a template that compiles."""
    tree = syntax_tree(source)
    assigned = {node.name for node in tree.find_all(nodes.Name) if node.ctx in ("store", "param")}
    read = dict.fromkeys(node.name for node in tree.find_all(nodes.Name) if node.ctx == "load")
    tested = {node.node.name for node in tree.find_all(nodes.Test) if isinstance(node.node, nodes.Name)}
    tested |= {node.node.name for node in tree.find_all(nodes.Filter) if isinstance(node.node, nodes.Name)}
    # A variable that is assigned somewhere is still the caller's where the template asks whether it is defined.
    names = [name for name in read if name not in _STANDARD and (name not in assigned or name in tested)]
    compared: dict[str, list[str]] = {name: [] for name in names}
    for name, text in _comparisons(tree):
        if name in compared and text not in compared[name]:
            compared[name].append(text)
    texts = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    texts += [node.data for node in tree.find_all(nodes.TemplateData)]
    found = dict.fromkeys(marker for text in texts for marker in markers(text))
    return Source(
        tuple((name, tuple(words)) for name, words in compared.items()),
        tuple(found)[:_MAX_CONSTANTS],
        "\n".join(texts),
    )


def _comparisons(tree: nodes.Template) -> Iterator[tuple[str, str]]:
    """Variables and the texts with which they are compared."""
    for node in tree.find_all(nodes.Compare):
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        names = [side.name for side in sides if isinstance(side, nodes.Name)]
        words = [word.value for side in sides for word in side.find_all(nodes.Const)] + [
            side.value for side in sides if isinstance(side, nodes.Const)
        ]
        yield from ((name, word) for name in names for word in words if isinstance(word, str))
