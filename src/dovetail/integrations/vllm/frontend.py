"""What vLLM's front end does about constraints while Dovetail makes the masks: Dovetail says what can be held.

Left to itself the front end asks XGrammar and llguidance, which refuse schemas that Dovetail holds, and the other way
round. One method is put in the place of another, on the objects of a server that was started with our masks, and one
function that looks at structural tags before them.
"""

from __future__ import annotations

from typing import Any

from dovetail.errors import InputError
from dovetail.integrations.vllm.scheduler import EngineError, is_chosen, unknown

_ATTACHED = "_dovetail_attached"

_masks = False


def masks_are_ours() -> bool:
    """Whether a server of this process was started with the masks of Dovetail."""
    return _masks


def attach() -> None:
    """Let each input processor of this process check constraints by Dovetail, where its server has our masks."""
    from vllm.v1.engine.input_processor import InputProcessor

    made: Any = InputProcessor
    if hasattr(made, _ATTACHED):
        return
    original = made.__init__

    def init(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        original(self, vllm_config, *args, **kwargs)
        if is_chosen(vllm_config):
            _take_over(self, vllm_config)

    made.__init__ = init
    setattr(made, _ATTACHED, True)


def _take_over(processor: Any, vllm_config: Any) -> None:
    global _masks
    if not hasattr(processor, "_validate_params"):
        raise EngineError(unknown("its InputProcessor has no `_validate_params`"))
    from vllm.entrypoints.generate.base import protocol

    _masks = True
    vars(protocol)["validate_structural_tag_payload"] = _pass
    if processor.tokenizer is None:
        return
    from dovetail.integrations.vllm.backend import Compiler

    compiler = Compiler(vllm_config, processor.tokenizer, vllm_config.model_config.get_vocab_size())
    original = processor._validate_params

    def validate(params: Any, *args: Any, **kwargs: Any) -> Any:
        asked = getattr(params, "structured_outputs", None)
        if asked is None or asked.all_constraints_none():
            return original(params, *args, **kwargs)
        check(asked, compiler)
        params.structured_outputs = None
        try:
            return original(params, *args, **kwargs)
        finally:
            params.structured_outputs = asked

    processor._validate_params = validate


def _pass(payload: Any, *, parameter: str) -> None:
    """Leave a structural tag to the check that comes later."""


def check(asked: Any, compiler: Any) -> None:
    """Refuse a constraint that cannot be held, as an error of the request."""
    from vllm.v1.structured_output.request import get_structured_output_key

    try:
        compiler.compile(*get_structured_output_key(asked))
    except InputError as error:
        raise refused(error) from None


def refused(error: InputError) -> Exception:
    """The error as vLLM answers it: status 400, with the problem, what to do, and the path."""
    from vllm.exceptions import VLLMValidationError

    text = f"{error.problem}; {error.fix}" if error.fix else error.problem
    made: Exception = VLLMValidationError(text, parameter=error.path or None)
    return made
