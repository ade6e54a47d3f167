"""The playground in Chromium: a template is pasted, an answer streams, regions and allowed tokens are seen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from dovetail import dialects
from dovetail.serving import Settings, speakers
from tests.serving.asking import http_client, serving

ARTIFACTS = Path(__file__).parent.parent.parent / "build" / "artifacts"
TEMPLATE = """{%- for message in messages %}
{%- if message.role == 'assistant' %}<|im_start|>assistant
{%- if message.reasoning_content %}
<think>
{{ message.reasoning_content }}
</think>
{% endif %}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
REGIONS = {"reasoning", "content", "tool_call", "markup"}


def chromium() -> str:
    """The browser of this machine; a machine without one cannot say whether the page works."""
    for name in (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome", "chrome"):
        if name and (found := shutil.which(name)):
            return found
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    if Path(bundled).exists():
        return bundled
    pytest.fail(
        "there is no Chromium: `apt-get install chromium`, `playwright install chromium`, or set CHROMIUM to one"
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        # Without a sandbox of its own, as root has none; the page is ours.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """The page, with no way to anything but its server, and with no error on its console."""
    context = browser.new_context(viewport={"width": 1400, "height": 1100})
    page = context.new_page()
    page.set_default_timeout(60_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    refused = "Failed to load resource: the server responded with a status of 400 (Bad Request)"  # the page tells why

    def only_home(route: Route) -> None:
        if route.request.url.startswith(url):
            route.continue_()
        else:
            problems.append(f"the page asks for {route.request.url}")
            route.abort()

    page.route("**/*", only_home)
    page.goto(url)
    yield page
    context.close()
    assert [] == [problem for problem in problems if problem != refused]


def regions(page: Page) -> set[str]:
    found: list[str] = page.locator("#raw span").evaluate_all("spans => spans.map(span => span.className)")
    return set(found)


def test_a_dialect_speaks_in_regions_beside_its_message(page: Page) -> None:
    page.select_option("#model", "speaker/qwen_3")
    page.select_option("#choice", "required")
    page.select_option("#reasoning", "high")
    page.click("#speak")
    page.get_by_text("Finished (tool_calls)").wait_for()
    assert {"reasoning", "tool_call", "markup"} <= regions(page) <= REGIONS
    message = page.locator("#message").inner_text()
    assert "get_weather" in message
    assert "<tool_call>" in "".join(page.locator("#raw .markup").all_inner_texts())
    tree = page.locator("#format").inner_text()
    assert "json_schema" in tree
    assert page.locator("#format details").count() > 2


def test_a_picture_of_the_page_is_kept(page: Page) -> None:
    page.select_option("#model", "speaker/qwen_3")
    page.select_option("#reasoning", "high")
    page.click("#speak")
    page.get_by_text("Finished").wait_for()
    page.fill("#step", "12")
    page.evaluate("scrollTo(0, 0)")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / "playground.png")
    assert 10_000 < (ARTIFACTS / "playground.png").stat().st_size


def test_the_tokens_of_every_step_can_be_looked_at(page: Page) -> None:
    page.fill("#schema", '{"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}')
    page.fill("#tools", "")
    page.select_option("#reasoning", "none")
    page.click("#speak")
    page.get_by_text("Finished (stop)").wait_for()
    # Back to the beginning, by keyboard: an answer to this schema can begin only with a brace, or space before it.
    page.focus("#step")
    page.keyboard.press("Home")
    assert "1" == page.locator("#step-number").inner_text()
    tokens = page.locator("#tokens li").all_inner_texts()
    assert "{" in tokens
    assert 1 == page.locator("#tokens li.said").count()
    assert not [token for token in tokens if token.isalpha()]


def test_a_pasted_template_is_checked_and_spoken(page: Page) -> None:
    page.fill("#template", TEMPLATE)
    page.click("#check")
    page.locator("#checks tr").first.wait_for()
    rows = dict(
        page.locator("#checks tr").evaluate_all(
            "rows => rows.map(row => [row.children[0].textContent, row.children[1].textContent])"
        )
    )
    assert "yes" == rows["content"] == rows["call"] == rows["reasoning"]
    page.select_option("#choice", "required")
    page.click("#speak")
    page.get_by_text("Finished (tool_calls)").wait_for()
    assert "get_weather" in page.locator("#message").inner_text()
    assert "tool_call" in regions(page)


def turns(page: Page) -> list[str]:
    """Who has said what before the answer that is shown."""
    lines: list[str] = page.locator("#chat li").evaluate_all("all => all.map(one => one.className)")
    return lines


def test_a_chat_goes_on_from_the_result_of_a_call_to_a_schema(page: Page) -> None:
    page.select_option("#model", "speaker/hermes")
    page.select_option("#choice", "required")
    page.fill("#question", "How warm is it?")
    page.press("#question", "Enter")
    page.get_by_text("Finished (tool_calls)").wait_for()
    assert ["user"] == turns(page)
    page.select_option("#choice", "none")
    page.get_by_label("What get_weather").first.fill("31 degrees")
    page.click("#speak")
    page.get_by_text("Finished (stop)").wait_for()
    assert ["user", "assistant"] == turns(page)[:2]
    assert "31 degrees" in page.locator("#chat li.tool").first.inner_text()
    assert page.locator("#chat li.assistant .tool_call").count()
    earlier = len(turns(page))
    page.fill("#schema", '{"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}')
    page.fill("#question", "Sure?")
    page.click("#speak")
    page.locator("#message", has_text="sure").wait_for()
    page.get_by_text("Finished (stop)").wait_for()
    assert ["assistant", "user"] == turns(page)[earlier:]
    page.click("#new")
    assert [] == turns(page)
    assert "How warm is it?" == page.input_value("#question")


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [("#tools", "[", "Tools is not JSON"), ("#schema", '{"type": "strin"}', "'strin'"), ("#question", " ", "question")],
)
def test_what_is_wrong_is_told_where_it_is_wrong_and_old_results_go(
    page: Page, field: str, text: str, told: str
) -> None:
    page.select_option("#choice", "none")
    page.click("#speak")
    page.get_by_text("Finished (stop)").wait_for()
    page.fill(field, text)
    page.click("#speak")
    page.locator("#error", has_text=told).wait_for()
    shown = ("#raw", "#message", "#tokens", "#allowed", "#status", "#format")
    assert ["", "", "", "", "", ""] == [page.locator(one).inner_text() for one in shown]
    assert page.locator("#step").is_disabled()
    assert ["user", "assistant"] == turns(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_is_in_sight_on_a_small_screen(browser: Browser, url: str, theme: Literal["light", "dark"]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=theme)
    page.goto(url)
    page.select_option("#choice", "required")
    page.click("#speak")
    page.get_by_text("Finished (tool_calls)").wait_for()
    sizes = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert [1280, 800] == page.evaluate(sizes)
    hidden = """() => [...document.querySelectorAll("select, textarea, input, button, section, h2")].filter(one => {
        const box = one.getBoundingClientRect();
        return one.checkVisibility() && (box.bottom > 800 || box.right > 1280 || box.top < 0 || !box.width);
    }).map(one => one.id || one.tagName)"""
    assert [] == page.evaluate(hidden)
    assert 0 == page.locator("#form").evaluate("form => form.scrollHeight - form.clientHeight")
    page.close()


def test_the_page_can_be_used_without_eyes_or_mouse(page: Page) -> None:
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button")]
            .filter(one => !(one.labels && one.labels.length) && !one.textContent.trim()).map(one => one.id)"""
    )
    assert [] == unnamed
    assert "en" == page.locator("html").get_attribute("lang")
    assert {"Request"} == set(page.get_by_role("form").evaluate_all("all => all.map(one => one.ariaLabel)"))
    assert 1 == page.get_by_role("heading", level=1).count()
    assert 4 <= page.get_by_role("region").count()
    for expected in ("model", "template", "check", "tools"):
        page.keyboard.press("Tab")
        assert expected == page.evaluate("document.activeElement.id")


def test_a_long_answer_can_be_stopped(browser: Browser) -> None:
    with serving(speakers(pace_s=0.05)) as url:
        page = browser.new_page()
        page.goto(url)
        page.select_option("#choice", "required")
        page.click("#speak")
        page.locator("#raw span").first.wait_for()
        page.click("#stop")
        page.get_by_text("Stopped after").wait_for()
        page.close()


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("/playground/check", {"template": "{% if %}"}, "/template, line 1"),
    ("/playground/check", {"template": ""}, "/template"),
    ("/playground/check", {}, "/template"),
    ("/playground/format", {"tools": [{"type": "function", "function": {}}]}, "/tools/0/function/name"),
    ("/playground/stream", {"model": "parrot"}, "/model"),
]


@pytest.mark.parametrize(("path", "body", "param"), BAD)
def test_bad_requests_of_the_page_are_refused(url: str, path: str, body: dict[str, Any], param: str) -> None:
    response = http_client(url).post(path, json=body)
    assert response.status_code in (400, 404)
    told = response.json()["error"]
    assert told["message"]
    assert param == told["param"]


def test_a_pasted_path_is_no_file_of_the_server(url: str, tmp_path: Path) -> None:
    secret = tmp_path / "chat_template.jinja"
    secret.write_text(TEMPLATE)
    for path in (secret, tmp_path):
        response = http_client(url).post("/playground/check", json={"template": str(path)})
        assert "tool_call" not in response.text or response.status_code == 400


def test_every_dialect_can_be_picked_and_the_page_can_be_left_out(url: str) -> None:
    text = http_client(url).get("/").text
    assert all(f"<option>speaker/{name}</option>" in text for name in dialects.names())
    with serving(speakers(), Settings(playground=False)) as bare:
        assert 404 == http_client(bare).get("/").status_code
