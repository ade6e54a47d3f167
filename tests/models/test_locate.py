"""What the names of models mean, and that a wrong one is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import dovetail as dt
from dovetail.agent.providers import configured
from dovetail.agent.types import ProviderError, ProviderOptions
from dovetail.models import load, locate
from dovetail.models.locate import looks_local


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with models in it, and an empty cache of the hub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "Qwen3-0.6B").mkdir()
    (tmp_path / "Qwen3-0.6B" / "config.json").write_text("{}")
    (tmp_path / "Qwen3-0.6B" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "small.gguf").write_bytes(b"GGUF and more")
    (tmp_path / "small").write_bytes(b"GGUF and more")
    (tmp_path / "broken.gguf").write_bytes(b"<html>")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / "two" / name).write_bytes(b"GGUF")
    return tmp_path


def cached(folder: Path, name: str, *files: str) -> Path:
    """A model in the cache as the hub's own client lays it out."""
    home = folder / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = home / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("c0ffee\n")
    for file in files:
        (snapshot / file).write_bytes(b"GGUF")
    return snapshot


def test_names_of_models_that_are_there(somewhere: Path) -> None:
    assert ("speaker", "speaker", Path()) == locate("speaker")
    assert ("gguf", "small", Path("small.gguf")) == locate("small.gguf")
    assert ("gguf", "small", somewhere / "small") == locate(somewhere / "small")
    assert ("transformers", "Qwen3-0.6B", Path("Qwen3-0.6B")) == locate("Qwen3-0.6B")
    assert ("transformers", "o/m", cached(somewhere, "o/m", "config.json")) == locate("o/m")
    assert ("gguf", "o/m-GGUF", cached(somewhere, "o/m-GGUF", "m.gguf") / "m.gguf") == locate("o/m-GGUF")


@pytest.mark.parametrize(
    ("name", "problem", "fix"),
    [
        ("smal.gguf", "no file 'smal.gguf'", "did you mean small.gguf?"),
        ("Qwen3-0.6", "no file or directory", "did you mean Qwen3-0.6B?"),
        ("./Qwen3-0.6", "no file or directory", "did you mean Qwen3-0.6B?"),
        ("./nothing/here", "no file or directory", "give a GGUF file"),
        ("broken.gguf", "not a GGUF file", "download"),
        ("notes.txt", "cannot be run", "give a GGUF file"),
        ("Qwen3-0.6B/model.safetensors", "cannot be run", "give the directory: Qwen3-0.6B"),
        ("empty", "holds no model", "config.json"),
        ("two", "holds 2 GGUF files", "name one, such as two/a.gguf"),
        ("org/absent", "nothing is fetched", "hf download org/absent"),
        ("gpt-5", "no file or directory", "give a GGUF file"),
    ],
)
def test_a_wrong_name_is_told_with_what_to_do(name: str, problem: str, fix: str) -> None:
    with pytest.raises(dt.ModelError) as error:
        load(name)
    assert problem in error.value.problem
    assert fix in error.value.fix


@pytest.mark.parametrize("name", ["x.gguf", "./x", "a/b", "~/x", "x.safetensors", "Qwen3-0.6B", "Qwen3-0.6", "smollm2"])
def test_what_looks_local_is_never_sent_to_a_provider(name: str) -> None:
    assert looks_local(name)
    ready = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost:1", "ANTHROPIC_API_KEY": "k"}
    assert "local" == configured(ProviderOptions(model=name), ready).name


@pytest.mark.parametrize("name", ["x.gguf", "./x", "~/x", "Qwen3-0.6B"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_provider_that_is_named_does_not_take_files(provider: str, name: str) -> None:
    with pytest.raises(ProviderError, match="is not sent"):
        configured(ProviderOptions(provider, name), {})


def test_a_server_of_ones_own_may_call_its_model_like_a_file() -> None:
    options = ProviderOptions(model="x.gguf", base_url="http://localhost:8080/v1")
    assert ("openai", "x.gguf") == (configured(options, {}).name, configured(options, {}).model)
    assert "gpt-5" == configured(ProviderOptions(model="gpt-5"), {"OPENAI_API_KEY": "k"}).model


@pytest.mark.parametrize("name", ["Phi-4-mini", "my-model", "llama3", "checkpoints"])
def test_a_bare_name_that_is_no_service_s_is_not_sent_to_one(name: str) -> None:
    with pytest.raises(ProviderError, match=r"no file or directory here(.|\n)*--provider"):
        configured(ProviderOptions(model=name), {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    own = {"OPENAI_BASE_URL": "http://localhost:8000/v1", "OPENAI_API_KEY": "k"}
    assert "openai" == configured(ProviderOptions(model=name), own).name
    assert "openai" == configured(ProviderOptions("openai", name), {}).name


@pytest.mark.parametrize("name", ["gpt-5", "o3-mini", "chatgpt-4o-latest", "ft:gpt-4o-mini:org::id", "codex-mini"])
def test_names_of_openai_go_there(name: str) -> None:
    assert "openai" == configured(ProviderOptions(model=name), {}).name
