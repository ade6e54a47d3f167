"""Jinja2 with the settings, filters and globals that Transformers gives to chat templates, and a budget.

The sandbox of jinja2 keeps templates from reaching out. Here they also pay: each block of statements for its nodes, and
each operation that can be long or make much, before it runs.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from string import Formatter
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, MacroRef, operators
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import (
    ImmutableSandboxedEnvironment,
    SandboxedEnvironment,
    SandboxedEscapeFormatter,
    SandboxedFormatter,
)
from jinja2.utils import Namespace
from markupsafe import Markup

from dovetail.errors import LimitError
from dovetail.templates.budget import BUDGET, Budget
from dovetail.templates.costs import (
    budgeted,
    budgeted_call,
    filter_cost,
    lipsum,
    percent,
    searched,
    spec_width,
    test_cost,
)

_MAX_TOKENS = 25_000


class _GenerationTag(Extension):
    """`{% generation %}` marks what the model writes; its body is a scope of its own, as in Transformers."""

    tags = {"generation"}  # noqa: RUF012 - the name and type are jinja2's

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Macro) -> str:
        return caller()


class _Length(Extension):
    """Refuses endless templates while they are read: a long one takes jinja2 and Python seconds to compile."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for count, token in enumerate(stream):
            if count > _MAX_TOKENS:
                problem = f"the chat template has more than {_MAX_TOKENS} tokens"
                raise LimitError(problem, f"line {token.lineno}", "is this a chat template? Real ones have a tenth")
            yield token


class _Dict:
    """`dict` for templates: the class itself would show them its attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """A namespace without private names, which would reach its own insides."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _refuse_private(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace holds no name with a leading underscore, such as {name!r}")


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    budget = BUDGET.get()
    budget.need(256 * len(format))
    return budget.clock().strftime(format)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Generator(CodeGenerator):
    """Writes the payments into the Python code of a template."""

    _defaults = 0  # what the defaults of the macro cost that is being written

    def blockvisit(self, nodes: Iterable[Node], frame: Frame) -> None:
        statements = list(nodes)
        self.writeline(f"environment.spend({_cost(statements) + self._defaults})")
        self._defaults = 0
        super().blockvisit(statements, frame)

    def macro_body(self, node: nodes.Macro | nodes.CallBlock, frame: Frame) -> tuple[Frame, MacroRef]:
        self._defaults = _cost(node.defaults)
        return super().macro_body(node, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802 - the names are jinja2's
        if node.test is not None:
            pay = nodes.EnvironmentAttribute(f"spend({_cost([node.test])})")
            node.test = nodes.And(pay, node.test)
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        if len(node.ops) == 1:
            self.write(f"environment.compared({node.ops[0].op!r}, ")
            self.visit(node.expr, frame)
            self.write(", ")
            self.visit(node.ops[0].expr, frame)
        else:
            self.write("(")
            self._visit_weighed(node.expr, frame)
            for operand in node.ops:
                self.write(f" {operators[operand.op]} ")
                self._visit_weighed(operand.expr, frame)
        self.write(")")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.kept(")
        super().visit_Getitem(node, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self.write("{")
        for pair in node.items:
            self._visit_weighed(pair.key, frame)
            self.write(": ")
            self.visit(pair.value, frame)
            self.write(", ")
        self.write("}")

    def _visit_weighed(self, node: nodes.Expr, frame: Frame) -> None:
        self.write("environment.weighed(")
        self.visit(node, frame)
        self.write(")")


def _cost(block: Iterable[Node]) -> int:
    """The nodes that a block runs itself; the blocks in it pay for themselves."""
    total, waiting = 2, list(block)
    while waiting:
        node = waiting.pop()
        total += _COSTS.get(type(node), 1)
        if isinstance(node, nodes.If):
            waiting += [branch.test for branch in node.elif_]
        waiting += [child for child in node.iter_child_nodes() if not isinstance(child, nodes.Stmt)]
    return total


# Steps of nodes that take longer than most; filters, tests and calls pay for themselves.
_COSTS: dict[type, int] = {nodes.Getattr: 20, nodes.NSRef: 20, nodes.Getitem: 5, nodes.Concat: 5, nodes.Compare: 5}
_COSTS |= dict.fromkeys((nodes.Add, nodes.Mul, nodes.Mod, nodes.Pow, nodes.Output), 5)


class _Paying(Formatter):
    """`str.format` that pays for the widths that it is asked for."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        BUDGET.get().need(spec_width(format_spec) + BUDGET.get().weigh(value).size)
        return BUDGET.get().keep(super().format_field(value, format_spec))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        BUDGET.get().need(BUDGET.get().weigh(value).size)
        return super().convert_field(value, conversion)


class _Formatter(_Paying, SandboxedFormatter):
    pass


class _EscapingFormatter(_Paying, SandboxedEscapeFormatter):
    pass


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with hooks through which all work goes."""

    code_generator_class = _Generator
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """The text of a macro or block."""
        budget, parts = BUDGET.get(), []
        for piece in pieces:
            budget.make(len(piece))
            parts.append(piece)
        return "".join(parts)

    def spend(self, steps: int) -> bool:
        """Pay for a block; true, so that it can stand in a condition."""
        BUDGET.get().spend(steps)
        return True

    def kept(self, value: Any) -> Any:
        """Pay for what was made."""
        return BUDGET.get().keep(value)

    def weighed(self, value: Any) -> Any:
        """Pay for a value that is about to be compared or hashed."""
        if isinstance(value, str):
            BUDGET.get().scan(len(value))
        else:
            BUDGET.get().weigh(value)
        return value

    def joined(self, values: Sequence[Any]) -> str:
        """The operator `~`."""
        budget = BUDGET.get()
        for value in values:
            budget.make(len(value) if isinstance(value, str) else budget.weigh(value).size)
        return "".join(map(str, values))

    def compared(self, operator: str, left: Any, right: Any) -> Any:
        """A comparison; of long or deep values it is work."""
        if type(left) is str and type(right) is str:
            if operator in ("in", "notin"):
                searched(BUDGET.get(), right, left)
            else:
                BUDGET.get().scan(len(left))
        elif type(left) is str and type(right) is dict:
            BUDGET.get().scan(len(left))
        else:
            BUDGET.get().weigh((left, right))
        return _COMPARISONS[operator](left, right)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = BUDGET.get()
        if operator == "+" and type(left) is str and type(right) is str:
            budget.make(len(left) + len(right))
            return left + right
        if operator == "*":
            _pay_product(budget, left, right)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            budget.number(left.bit_length() * max(right, 1))
        elif operator == "%" and isinstance(left, str | bytes):
            percent(budget, left if isinstance(left, str) else left.decode("latin-1"), right)
        elif operator == "+" and isinstance(left, list | tuple | bytes) and isinstance(right, list | tuple | bytes):
            budget.need((len(left) + len(right)) * 8)
        return budget.keep(super().call_binop(context, operator, left, right))

    def getattr(self, obj: Any, attribute: str) -> Any:
        # Most attributes are keys of messages and values of namespaces, for which the long way round is five times as
        # long.
        if type(obj) is dict and attribute not in _OF_DICTS:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if type(obj) is _Namespace and not attribute.startswith("_"):
            held = object.__getattribute__(obj, "_Namespace__attrs")
            if attribute in held:
                return held[attribute]
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return super().getitem(obj, self.weighed(argument) if isinstance(argument, str | tuple) else argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is None:
            return None
        text, name = value.__self__, value.__name__

        def run(*args: Any, **kwargs: Any) -> str:
            if name == "format_map":
                args, kwargs = (), dict(*args)
            if isinstance(text, Markup):
                return Markup(_EscapingFormatter(self, escape=text.escape).vformat(text, args, kwargs))
            return _Formatter(self).vformat(text, args, kwargs)

        return run

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        budget = BUDGET.get()
        budget.spend(_CALL + len(args) + len(kwargs))
        if isinstance(__obj, (Macro, LoopContext, BlockReference, type)):
            budget.spend(_MACRO)
            return super().call(__context, __obj, *args, **kwargs)
        args = budgeted_call(budget, __obj, args, kwargs)
        return budget.keep(super().call(__context, __obj, *args, **kwargs))


_OF_DICTS = frozenset(dir(dict))
_CALL, _MACRO = 30, 100  # steps; a macro has its own scope, buffer and signature
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


def _pay_product(budget: Budget, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        budget.number(left.bit_length() + right.bit_length())
    for many, times in ((left, right), (right, left)):
        if isinstance(many, str | bytes | list | tuple) and isinstance(times, int):
            budget.need(len(many) * max(times, 0) * (1 if isinstance(many, str | bytes) else 8))


def _finalized(value: Any) -> Any:
    """What is about to be written; text pays where it is put together."""
    if type(value) is not str:
        budget = BUDGET.get()
        budget.need(budget.weigh(value).size)
    return value


class _Nothing(jinja2.ChainableUndefined):
    """An undefined value that is empty text wherever text is needed."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__


class _LenientEnvironment(_Environment):
    """Takes what other runtimes take: there, templates append to lists and add what is undefined to text."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)


def _lenient_tojson(value: Any, *_: Any, **options: Any) -> str:
    known = {key: options[key] for key in ("indent", "separators", "sort_keys") if key in options}
    return json.dumps(value, ensure_ascii=False, default=_listed, **known)


def _listed(value: Any) -> Any:
    return "" if isinstance(value, jinja2.Undefined) else list(value)


@cache
def _environment(lenient: bool) -> _Environment:
    environment = (_LenientEnvironment if lenient else _Environment)(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=_Nothing if lenient else jinja2.Undefined,
        finalize=_finalized,
        extensions=[_GenerationTag, _Length, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _lenient_tojson if lenient else _tojson
    filters: dict[str, Any] = environment.filters
    tests: dict[str, Any] = environment.tests
    environment.filters = {name: budgeted(run, filter_cost(name)) for name, run in filters.items()}
    environment.tests = {name: budgeted(run, test_cost(name)) for name, run in tests.items()}
    environment.globals.update(
        raise_exception=_raise_exception, strftime_now=_strftime_now, dict=_Dict(), namespace=_Namespace, lipsum=lipsum
    )
    return environment


def syntax_tree(source: str) -> nodes.Template:
    """What the template says, unrendered."""
    return _environment(False).parse(source)


def compile_template(source: str, lenient: bool = False) -> jinja2.Template:
    """The template, ready for `render`; constant parts are worked out here, so it has a budget too."""
    token = BUDGET.set(Budget())
    try:
        return _environment(lenient).from_string(source)
    finally:
        BUDGET.reset(token)


def render(template: jinja2.Template, values: dict[str, Any], clock: Callable[[], datetime]) -> str:
    """The text that the template makes of `values`."""
    budget = Budget(clock)
    budget.allow(values)
    token = BUDGET.set(budget)
    try:
        return _Environment.concat(template.root_render_func(template.new_context(values)))
    finally:
        BUDGET.reset(token)
