"""Hostile templates end in a clear error, honest ones do not notice the budget."""

from __future__ import annotations

import threading
import tomllib
from pathlib import Path

import pytest

import dovetail as dt
from dovetail.templates.budget import BUDGET, Budget
from dovetail.templates.render import ChatTemplate
from tests.recorded import templates

HOSTILE = [
    pytest.param(*row, id=name)
    for rows in tomllib.loads((Path(__file__).parent / "hostile.toml").read_text()).values()
    for name, row in rows.items()
]
CHAT = [{"role": "user", "content": "hi"}]
# Sources that take too long to compile, or too deep, each for a size.
ENDLESS = {
    "outputs": lambda n: "{{ a }}" * n,
    "branches": lambda n: "".join(f"{{% if x %}}{{% set a{i} = 1 %}}{{% endif %}}" for i in range(n)),
    "nested branches": lambda n: "{% if x %}" * n + "{% endif %}" * n,
    "nested loops": lambda n: "{% for a in x %}" * n + "{% endfor %}" * n,
    "parentheses": lambda n: "{{ " + "(" * n + ")" * n + " }}",
    "a sum": lambda n: "{{ " + "+".join(["a"] * n) + " }}",
    "negations": lambda n: "{{ " + "not " * n + "a }}",
    "filters": lambda n: "{{ a" + "|upper" * n + " }}",
    "attributes": lambda n: "{{ a" + ".b" * n + " }}",
    "alternatives": lambda n: "{% if a %}" + "{% elif b %}" * n + "{% endif %}",
    "opened tags": lambda n: "{{" * n,
    "text": lambda n: "text " * n * 9,
}


@pytest.mark.parametrize(("error", "source"), HOSTILE)
def test_a_hostile_template_ends_in_a_clear_error(error: str, source: str) -> None:
    with pytest.raises(getattr(dt, error)) as caught:
        ChatTemplate(source).render(CHAT)
    assert error == type(caught.value).__name__
    assert caught.value.problem.startswith("the chat template")
    assert caught.value.fix


@pytest.mark.parametrize(("error", "source"), HOSTILE[::3])
def test_a_lenient_runtime_contains_a_hostile_template_too(error: str, source: str) -> None:
    if error == "LimitError":
        with pytest.raises(dt.LimitError):
            ChatTemplate(source, lenient=True).render(CHAT)
    else:
        try:
            text = ChatTemplate(source, lenient=True).render(CHAT)
        except dt.DovetailError:
            return
        assert not set("<{/") & set(text), "nothing of Python's insides is shown"


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_source_ends_in_a_clear_error(kind: str) -> None:
    with pytest.raises(dt.LimitError) as caught:
        ChatTemplate(ENDLESS[kind](30_000)).render(CHAT)
    assert caught.value.fix


def test_a_hostile_template_works_no_longer_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on steps, so that it holds on any machine; a step takes some 50 ns."""
    budgets: list[Budget] = []
    made = Budget.__init__
    monkeypatch.setattr(Budget, "__init__", lambda self, *args: (made(self, *args), budgets.append(self))[0])
    with pytest.raises(dt.LimitError):
        ChatTemplate("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}").render(CHAT)
    assert -100 < min(budget.steps for budget in budgets) < 0


def test_a_lenient_runtime_takes_what_others_take() -> None:
    source = "{% set a = [] %}{% set _ = a.append(1) %}{{ a }}{{ missing.x + 'b' }}{{ messages|map('upper')|tojson }}"
    with pytest.raises(dt.TemplateError):
        ChatTemplate(source).render([])
    assert "[1]b[]" == ChatTemplate(source, lenient=True).render([])


def test_a_list_that_grows_without_end_is_stopped() -> None:
    source = "{% set a = [1] %}{% for i in range(99) %}{% set _ = a.extend(a) %}{% endfor %}"
    with pytest.raises(dt.LimitError):
        ChatTemplate(source, lenient=True).render([])


def test_all_templates_render_a_long_conversation(conformance: Path) -> None:
    turn = [{"role": "user", "content": "hi " * 500}, {"role": "assistant", "content": "yes " * 500}]
    rendered = 0
    for path in templates(conformance / "llama_cpp" / "templates"):
        try:
            rendered += len(ChatTemplate(path.read_text()).render(turn * 60, [])) > 120_000
        except dt.TemplateError:
            continue  # some want tools, or another order of roles
    assert rendered > 45


def test_two_threads_have_budgets_of_their_own() -> None:
    template = ChatTemplate("{% for a in range(20000) %}{{ 'a' * 10 }}{% endfor %}")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(template.render(CHAT)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [200_000] * 4 == found
    assert BUDGET.get(None) is None
