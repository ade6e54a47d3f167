"""The tool that fetches pages: what is shown of them, and what is out of reach."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.permissions import Rule, Rules
from dovetail.agent.tools.web import _is_public, html_text
from dovetail.agent.types import ToolError, ToolLimits
from tests.agent.servers.pages import serving
from tests.agent.tools.conftest import Call, context_in

PAGES = {
    "/": (
        "text/html",
        b"<html><head><title>t</title></head><body><h1>A &amp; B</h1><p>one\n two</p><script>x</script>",
    ),
    "/plain": ("text/plain; charset=latin-1", b"caf\xe9"),
    "/big": ("text/plain", b"x" * 5000),
    "/image": ("image/png", b"\x89PNG"),
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path in ("/there", "/loop", "/away"):
            self.send_response(302)
            target = {"/there": "/plain", "/loop": "/loop", "/away": "http://other.example/x"}[self.path]
            self.send_header("Location", target)
            self.end_headers()
            return
        kind, body = PAGES.get(self.path, ("text/plain", b"nothing here"))
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving(_Pages) as url:
        yield url


def allowed(workspace: Path, *rules: str, **limits: int) -> object:
    made = Rules(workspace=workspace, allow=tuple(Rule.parse(rule) for rule in rules))
    return context_in(workspace, permissions=made, limits=ToolLimits(**limits))


FETCHES = [
    ("/", "200", "A & B\none two"),
    ("/plain", "200", "café"),
    ("/there", "200", "café"),
    ("/big", "200", "x" * 1000 + "\n[cut]"),
    ("/absent", "404", "nothing here"),
]


@pytest.mark.parametrize(("path", "status", "body"), FETCHES)
def test_a_page_comes_as_text(call: Call, tmp_path: Path, site: str, path: str, status: str, body: str) -> None:
    context = allowed(tmp_path, "WebFetch(domain:127.0.0.1)", max_output_bytes=1000)
    output = call("web_fetch", context, url=site + path)
    first, _, rest = output.content.partition("\n")
    assert first.startswith(f"[{status} {site}")
    assert body == rest
    assert output.is_error == (status == "404")


@pytest.mark.parametrize(("path", "problem"), [("/image", "image/png, not text"), ("/loop", "redirects too often")])
def test_what_cannot_be_shown_is_told(call: Call, tmp_path: Path, site: str, path: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        call("web_fetch", allowed(tmp_path, "WebFetch(domain:127.0.0.1)"), url=site + path)


def test_a_redirect_to_another_site_is_told_not_followed(call: Call, tmp_path: Path, site: str) -> None:
    context = allowed(tmp_path, "WebFetch(domain:127.0.0.1)")
    assert "redirects to another site: http://other.example/x" in call("web_fetch", context, url=f"{site}/away").content


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "http://169.254.1.1/"]
)
def test_the_own_network_is_out_of_reach_unless_a_rule_names_it(call: Call, tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolError, match="inside the own network"):
        call("web_fetch", allowed(tmp_path, "web_fetch"), url=url)


@pytest.mark.parametrize("rule", ["WebFetch(*)", "WebFetch(http://*)", "WebFetch(domain:*)", "WebFetch(*://*/*)"])
def test_a_rule_for_any_site_names_none_in_the_own_network(call: Call, tmp_path: Path, rule: str) -> None:
    with pytest.raises(ToolError, match="inside the own network"):
        call("web_fetch", allowed(tmp_path, rule), url="http://localhost:9/x")


def test_what_is_fetched_is_the_address_that_was_checked(
    call: Call, tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns a name may let it mean something public first, and then something in the own network."""
    ask, asked = socket.getaddrinfo, []

    def answer(name: Any, *rest: Any, **more: Any) -> Any:
        asked.append(name)
        return ask("127.0.0.1" if asked.count("turning.example") == 1 else "127.0.0.9", *rest, **more)

    monkeypatch.setattr("socket.getaddrinfo", answer)
    monkeypatch.setattr("dovetail.agent.tools.web._is_public", lambda place: str(place) == "127.0.0.1")
    monkeypatch.setattr("dovetail.agent.tools.web.getproxies", dict)
    url = site.replace("127.0.0.1", "turning.example")
    assert "café" in call("web_fetch", allowed(tmp_path, "web_fetch"), url=f"{url}/plain").content
    assert 1 == asked.count("turning.example")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "no address", "http://"])
def test_only_web_addresses_are_fetched(call: Call, tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolError, match="only http and https"):
        call("web_fetch", allowed(tmp_path, "web_fetch"), url=url)


def test_nobody_there_is_told(call: Call, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be fetched"):
        call("web_fetch", allowed(tmp_path, "WebFetch(domain:127.0.0.1)"), url="http://127.0.0.1:9/")


def test_broken_html_is_read_as_far_as_it_goes() -> None:
    assert "a\nb" == html_text("<p>a</script><div>b<style>c")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:a00:1::1", "169.254.169.254", "224.0.0.1"],
)
def test_an_address_that_leads_into_the_own_network_is_none_of_the_public(address: str) -> None:
    assert not _is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert _is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("url", [" https://good.com/", "https://good.com\t.evil.com/", "https://g\u3002good.com/"])
def test_an_address_that_two_readers_take_for_different_sites_is_not_fetched(
    call: Call, tmp_path: Path, url: str
) -> None:
    with pytest.raises(ToolError):
        call("web_fetch", allowed(tmp_path, "WebFetch(domain:good.com)"), url=url)
