"""What the source of a template tells without rendering: its variables, what they are compared with, its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import nodes

from dovetail.templates.analysis.diff import markers
from dovetail.templates.render import syntax_tree

# What Transformers passes to every template, and what a conversation is made of.
_STANDARD = frozenset(
    "messages tools documents add_generation_prompt bos_token eos_token unk_token pad_token continue_final_message"
    " raise_exception strftime_now range dict lipsum cycler joiner namespace loop tools_in_user_message"
    " builtin_tools custom_tools available_tools date_string controls self".split()
)
_MAX_CONSTANTS = 64
_REASONING = re.compile(r"reason|think|thought")


@dataclass(frozen=True, slots=True)
class Source:
    """Facts about a template."""

    variables: tuple[tuple[str, tuple[str, ...]], ...]  # those a caller may set, with the texts they are compared with
    markers: tuple[str, ...]  # the markers among its texts
    texts: str  # everything that it may write, in one piece
    reasoning: tuple[str, ...]  # the names of fields that may hold reasoning
    names: frozenset[str]  # all variables and fields that it reads


@lru_cache(maxsize=16)
def read_source(source: str) -> Source:
    """The facts of a template that compiles."""
    walk = _Walk()
    walk.over(syntax_tree(source))
    # A variable that is assigned somewhere is still the caller's where the template asks whether it is defined.
    names = [name for name in walk.read if name not in _STANDARD and (name not in walk.assigned or name in walk.tested)]
    marks = dict.fromkeys(marker for text in walk.texts for marker in markers(text))
    return Source(
        tuple((name, tuple(walk.compared.get(name, ()))) for name in names),
        tuple(marks)[:_MAX_CONSTANTS],
        "\n".join(walk.texts),
        tuple(name for name in walk.fields if _REASONING.search(name)),
        frozenset((*walk.read, *walk.fields)),
    )


class _Walk:
    """One walk over the tree of a template, which is most of what reading it costs."""

    def __init__(self) -> None:
        self.assigned: set[str] = set()
        self.tested: set[str] = set()
        self.read: dict[str, None] = {}
        self.compared: dict[str, dict[str, None]] = {}
        self.texts: list[str] = []
        self.fields: dict[str, None] = {}

    def over(self, tree: nodes.Template) -> None:
        """Collect what there is."""
        waiting: list[nodes.Node] = [tree]
        while waiting:
            node = waiting.pop()
            self._take(node)
            waiting += reversed(list(node.iter_child_nodes()))

    def _take(self, node: nodes.Node) -> None:
        match node:
            case nodes.Name(name=name, ctx="load"):
                self.read[name] = None
            case nodes.Name(name=name):
                self.assigned.add(name)
            case nodes.Test(node=nodes.Name(name=name)) | nodes.Filter(node=nodes.Name(name=name)):
                self.tested.add(name)
            case nodes.Getattr(attr=name) | nodes.Getitem(arg=nodes.Const(value=str() as name)):
                self.fields[name] = None
            case nodes.Call(node=nodes.Getattr(attr="get"), args=[nodes.Const(value=str() as name), *_]):
                self.fields[name] = None
            case nodes.Compare():
                self._compare(node)
            case nodes.Const(value=str() as text) | nodes.TemplateData(data=text):
                self.texts.append(text)

    def _compare(self, node: nodes.Compare) -> None:
        """A variable and the texts with which it is compared."""
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        words = [side for side in sides if isinstance(side, nodes.Const)]
        words += [word for side in sides for word in side.find_all(nodes.Const)]
        for side in sides:
            if isinstance(side, nodes.Name):
                known = self.compared.setdefault(side.name, {})
                known.update(dict.fromkeys(word.value for word in words if isinstance(word.value, str)))
