"""The error of a schema that cannot be the contract of a run."""

from __future__ import annotations

from dovetail.errors import SchemaError


class ContractError(SchemaError):
    """A schema cannot be the contract of a run; the run stops before it starts."""
