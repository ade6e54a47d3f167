"""The contract of a run: the schema that its answer has to fit, checked before anything is sent to a model.

raw --source--> schema --root--> admits objects, or is wrapped --strict--> validators --witness--> can be satisfied
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.agent.contract.problems import ContractError
from dovetail.agent.contract.root import accepts_object, takes_only_objects
from dovetail.agent.contract.source import read_schema
from dovetail.agent.contract.strict import Compiled, compile_strictly
from dovetail.agent.contract.validation import Checked, Finding, Repair, check
from dovetail.agent.contract.witness import find_witness
from dovetail.agent.contract.wrapping import PARAMETER, wrapped
from dovetail.agent.types import REDACTED_ARGUMENTS, Schema

__all__ = ["Checked", "Contract", "ContractError", "Finding", "Repair", "make_contract", "read_contract"]

_ROOT = (
    "--json-schema root must accept object-typed values (tool parameters are always JSON objects). At least one branch "
    'of a root anyOf/oneOf must be satisfiable by an object, and a root `type` (when present) must include "object".'
)
# A schema travels with every request; beyond this it costs more than most prompts.
LARGE_BYTES = 32 << 10


@dataclass(frozen=True, slots=True)
class Contract:
    """What the answer has to fit: `parameters` is the schema as the terminal tool has it."""

    schema: Schema
    parameters: Schema
    compiled: Compiled
    is_wrapped: bool = False
    example: Any = None
    warnings: tuple[str, ...] = ()
    validate: Callable[[Any], Any] | None = None

    @property
    def example_arguments(self) -> Mapping[str, Any] | None:
        """Arguments of the terminal tool that fit, if some were found."""
        if self.is_wrapped:
            return {PARAMETER: self.example} if self.example is not None else None
        return self.example if isinstance(self.example, Mapping) else None

    def check(self, arguments: Mapping[str, Any]) -> Checked:
        """Hold the arguments of a call to the contract; the value of the result is what the run would emit."""
        if arguments.keys() == REDACTED_ARGUMENTS.keys():
            problem = "this is the placeholder of an earlier answer, not an answer; call with real data"
            return Checked(None, (Finding("", problem, "/"),))
        value: Any = dict(arguments)
        if self.is_wrapped:
            if arguments.keys() != {PARAMETER}:
                problem = f'expected exactly one property, "{PARAMETER}", which holds the answer'
                return Checked(None, (Finding("", problem, "/"),))
            value = arguments[PARAMETER]
        checked = check(value, self.compiled.validators)
        return checked if checked.findings else self._meaning(checked)

    def _meaning(self, checked: Checked) -> Checked:
        """What the caller's own check says; what it raises is told to the model."""
        if self.validate is None:
            return checked
        try:
            self.validate(checked.value)
        except (ValueError, AssertionError, TypeError) as error:
            return Checked(None, (Finding("", str(error) or type(error).__name__, "validate"),))
        return checked


def read_contract(
    raw: str, launch_directory: Path, *, wrap_root: bool = False, allow_unknown: bool = False
) -> Contract:
    """The contract that the value of `--json-schema` makes."""
    return make_contract(read_schema(raw, launch_directory), wrap_root=wrap_root, allow_unknown=allow_unknown)


def make_contract(
    schema: Schema,
    *,
    wrap_root: bool = False,
    allow_unknown: bool = False,
    validate: Callable[[Any], Any] | None = None,
) -> Contract:
    """The contract of a schema, or a ContractError that says why it cannot be one.

    With `wrap_root` any value may be the answer: unless the root takes only objects, the value is the one parameter of
    the tool.
    """
    takes_objects = takes_only_objects(schema) if wrap_root else accepts_object(schema)
    if not takes_objects and not wrap_root:
        raise ContractError(_ROOT, "", "change the root, or pass --wrap-root to have the answer wrapped and unwrapped")
    compiled = compile_strictly(schema, allow_unknown)
    asked = {**schema, "type": "object"} if takes_objects else schema
    verdict = find_witness(asked, lambda value: not check(value, compiled.validators).findings)
    warnings = list(compiled.warnings)
    if verdict.possible is False:
        what = "object" if takes_objects else "value"
        raise ContractError(
            f"--json-schema cannot be satisfied: no {what} fits it",
            "",
            "loosen the keywords that contradict each other",
        )
    if verdict.possible is None:
        warnings.append(f"--json-schema: it is not known whether any value satisfies it ({verdict.why})")
    size = len(repr(schema))
    if size > LARGE_BYTES:
        warnings.append(f"--json-schema has about {size} bytes, which every request to the model will carry")
    parameters = schema if takes_objects else wrapped(schema)
    return Contract(schema, parameters, compiled, not takes_objects, verdict.example, tuple(warnings), validate)
