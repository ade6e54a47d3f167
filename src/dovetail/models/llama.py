"""Any GGUF file that llama.cpp runs."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dovetail.dialects import Dialect
from dovetail.engine import Vocabulary
from dovetail.errors import InputError, ModelError, TemplateError
from dovetail.extras import install
from dovetail.models.batched_model import BatchedModel
from dovetail.models.templated_model import find_dialect
from dovetail.templates.render import ChatTemplate
from dovetail.templates.sources import find_template

# The threads of a step wait for each other hundreds of times. Where other programs want the processor too, OpenMP's
# long spinning gave 1.3 tokens per second on a busy machine of two cores, and what it does with more threads than
# cores, 27. It looks once, when its library is loaded; programs that are started from here shall not see it.
_SPINS = "GOMP_SPINCOUNT"
_is_set = _SPINS in os.environ or "OMP_WAIT_POLICY" in os.environ
if not _is_set:
    os.environ[_SPINS] = "1000"
try:
    import llama_cpp

    from dovetail.models.llama_rows import LlamaRows
except ImportError as error:
    raise ModelError("llama-cpp-python is not installed", "", install("llama")) from error
finally:
    if not _is_set:
        del os.environ[_SPINS]

_MOST_CELLS = 8192  # tokens that all running requests hold together, unless more are asked for
_LEVEL_ERROR = 4

Progress = Callable[[float], None]


class LlamaModel(BatchedModel):
    """A model in a GGUF file, with the vocabulary and the chat template that are in it.

    `max_context` is how many tokens all running requests hold together, at most what the model was trained for.
    `progress` is told how much is loaded, from 0 to 1.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        dialect: Dialect | str | None = None,
        max_rows: int = 32,
        max_context: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        path = Path(path)
        self._lock = threading.Lock()  # between those who encode and the one who closes
        self._template = _template(path)
        self._model = _load(path, progress)
        self._handle = llama_cpp.llama_model_get_vocab(self._model)
        self.threads = threads or len(os.sched_getaffinity(0))
        self._adds_bos = bool(llama_cpp.llama_vocab_get_add_bos(self._handle))
        trained = llama_cpp.llama_model_n_ctx_train(self._model)
        cells = min(trained, max_context or _MOST_CELLS)
        try:
            vocabulary = Vocabulary.from_gguf(path, self._stop_tokens(), size=self._size)
            located = find_dialect(path, dialect)
            rows = LlamaRows(
                self._model,
                cells=cells,
                max_rows=max_rows,
                threads=self.threads,
                shares=not (
                    llama_cpp.llama_model_is_recurrent(self._model) or llama_cpp.llama_model_is_hybrid(self._model)
                ),
            )
        except InputError as error:
            llama_cpp.llama_model_free(self._model)
            raise ModelError(f"this model cannot be run: {error.problem}", error.path, error.fix) from error
        super().__init__(name or path.stem, vocabulary, located, rows, max_rows, cells, named=bool(dialect))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text as the tokenizer cuts it; special tokens are recognized, and none are added."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        with self._lock:
            if not self._model:
                raise ModelError("the model was closed", "", "load it again")
            while True:
                ids = (ctypes.c_int32 * size)()
                count = llama_cpp.llama_tokenize(self._handle, data, len(data), ids, size, False, True)
                if count >= 0:
                    return ids[:count]
                size = -count

    def close(self) -> None:
        """End the thread of the model and let go of its memory."""
        super().close()
        with self._lock:
            if self._model:
                llama_cpp.llama_model_free(self._model)
                self._model = None

    @property
    def _size(self) -> int:
        return int(llama_cpp.llama_vocab_n_tokens(self._handle))

    def _stop_tokens(self) -> list[int]:
        """The tokens at which llama.cpp ends an output: it knows more of them than files tell."""
        return [token for token in range(self._size) if llama_cpp.llama_vocab_is_eog(self._handle, token)]

    @property
    def _source(self) -> str:
        return self._template.source if self._template else ""

    def _apply_template(self, turns: list[dict[str, Any]], tools: Any, options: Mapping[str, Any]) -> str:
        assert self._template is not None
        text = self._template.render(turns, tools, True, **options)
        first = self._template.bos_token
        return first + text if self._adds_bos and not text.startswith(first) else text


def model_params() -> Any:
    """How llama.cpp is told to load a model, before anything is said of this one.

    Without the tiles of AMX: compiled by GCC 12, llama.cpp configures them from memory that was never written (the
    intrinsic of the compiler names 8 of 64 bytes), and crashes or says nonsense.
    """
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info()
    return params


def _template(path: Path) -> ChatTemplate | None:
    """The chat template in a file; an error where the file cannot be read."""
    if not path.is_file():
        raise ModelError(f"there is no file {str(path)!r}", "", "give the path of a GGUF file")
    try:
        template = find_template(path)
    except TemplateError as error:
        if "no chat template" in error.problem:
            return None
        raise ModelError(error.problem, error.path, error.fix) from error
    return ChatTemplate(template.text, template.bos_token, template.eos_token, lenient=True)


def _load(path: Path, progress: Progress | None) -> Any:
    """The model, loaded by llama.cpp, whose own words about what is wrong go into the error."""
    errors: list[str] = []

    def hear(level: int, text: bytes, _: object) -> None:
        if level == _LEVEL_ERROR:
            errors.append(text.decode("utf-8", "replace").strip())

    def advance(share: float, _: object) -> bool:
        if progress is not None:
            progress(share)
        return True

    llama_cpp.llama_backend_init()
    listening = llama_cpp.llama_log_callback(hear)
    llama_cpp.llama_log_set(listening, None)
    try:
        params = model_params()
        params.progress_callback = llama_cpp.llama_progress_callback(advance)
        model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
    finally:
        llama_cpp.llama_log_set(_QUIET, None)
    if not model:
        problem = next((line for line in errors if line), "llama.cpp does not say why")
        raise ModelError(f"llama.cpp cannot load this file: {problem}", str(path), "give a model for text, in GGUF")
    if llama_cpp.llama_model_has_encoder(model) or not llama_cpp.llama_model_has_decoder(model):
        llama_cpp.llama_model_free(model)
        raise ModelError("this model does not continue text", str(path), "give a causal language model")
    return model


# What llama.cpp calls from then on: stderr belongs to the program.
_QUIET = llama_cpp.llama_log_callback(lambda *_: None)
