"""What a server answers when it does not answer: one status, type and code for each error, in the shape asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dovetail.errors import InputError, LimitError
from dovetail.messages import Wire
from dovetail.models.engines.failures import ReplicaError

Interface = Literal["openai", "anthropic"]

# Status, and the type under which each interface knows it.
_KINDS = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("not_found_error", "not_found_error"),
    405: ("invalid_request_error", "invalid_request_error"),
    408: ("timeout_error", "timeout_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_error"),
    500: ("server_error", "api_error"),
    503: ("server_error", "overloaded_error"),
}


class RequestError(InputError):
    """A request that is not served, with the status that says so."""

    def __init__(self, problem: str, path: str = "", fix: str = "", *, status: int = 400, code: str = "") -> None:
        super().__init__(problem, path, fix)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the wire has it; `param` is the JSON Pointer of what was wrong in the body."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None

    def body(self, interface: Interface, request_id: str = "") -> Wire:
        """The error in the shape of an interface."""
        openai, anthropic = _KINDS[self.status]
        if interface == "anthropic":
            error: Wire = {"type": anthropic, "message": self.message, "param": self.param}
            return {"type": "error", "error": error, "request_id": request_id or None}
        return {"error": {"message": self.message, "type": openai, "param": self.param, "code": self.code}}


def refusal(error: Exception) -> Refusal:
    """What is answered to an error; an error that is not the caller's tells nothing of itself."""
    if isinstance(error, RequestError):
        return Refusal(error.status, _message(error), error.path or None, error.code or None)
    if isinstance(error, InputError):
        code = "limit_exceeded" if isinstance(error, LimitError) else None
        return Refusal(400, _message(error), error.path or None, code)
    if isinstance(error, ReplicaError):
        return Refusal(503, "the engine behind this server did not answer; try again", None, "engine_failed")
    return Refusal(500, "the server failed to answer this request; its log tells why")


def _message(error: InputError) -> str:
    return f"{error.problem}; {error.fix}" if error.fix else error.problem
