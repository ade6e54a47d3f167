"""What goes wrong with engines elsewhere."""

from __future__ import annotations

from dovetail.errors import DovetailError


class ReplicaError(DovetailError):
    """A replica did not answer, or broke its answer off; nobody who asked has done anything wrong."""


class BusyError(ReplicaError):
    """A replica says that it has too much to do; it is well otherwise."""


class RefusedError(DovetailError):
    """An engine does not take a request as it stands; its words say why."""
