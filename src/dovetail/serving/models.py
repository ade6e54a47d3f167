"""The models that a server offers, by the names that clients use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from dovetail import dialects
from dovetail.models import Model, Speaker, load
from dovetail.models.engines.model import EngineModel
from dovetail.models.engines.pool import Pool
from dovetail.serving.errors import RequestError


class Models:
    """Models by name, each made when it is first asked for; the first one is meant where a request names none."""

    def __init__(self, makers: Mapping[str, Callable[[], Model]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Model] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return list(self._makers)

    def get(self, name: str = "") -> Model:
        """The model of this name; it may take a while to make."""
        name = name or next(iter(self._makers))
        if name not in self._makers:
            raise RequestError(
                f"there is no model {name[:200]!r}",
                "/model",
                "use one that /v1/models lists",
                status=404,
                code="model_not_found",
            )
        with self._lock:
            if name not in self._made:
                self._made[name] = self._makers[name]()
            return self._made[name]

    @property
    def pools(self) -> list[Pool]:
        """The engines behind the models that are made."""
        with self._lock:
            return [model.pool for model in self._made.values() if isinstance(model, EngineModel)]

    def close(self) -> None:
        """Let go of all models."""
        with self._lock:
            for model in self._made.values():
                model.close()
            self._made.clear()


def speakers(dialect: str | None = None, seed: int = 0, pace_s: float = 0.0) -> Models:
    """The embedded speaker in every dialect: `speaker/qwen_3` and so on, and `speaker` for the one given here."""

    def maker(name: str) -> Callable[[], Model]:
        return lambda: Speaker(seed, dialect=name, pace_s=pace_s)

    first = dialects.get(dialect or "qwen_3").name
    return Models({"speaker": maker(first)} | {f"speaker/{name}": maker(name) for name in dialects.names()})


def engines(model: EngineModel) -> Models:
    """A model that engines elsewhere serve."""
    served = Models({model.name: lambda: model})
    served.get()
    return served


def local(model: str | Path | Model, name: str | None = None, dialect: str | None = None) -> Models:
    """A model that is loaded, or one that `dovetail.models.load` knows, loaded at once."""
    loaded = load(model, dialect=dialect) if isinstance(model, str | Path) else model
    return Models({name or loaded.name: lambda: loaded})
