"""web_fetch: one page as text, never from addresses inside the own network unless a rule names the host."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Mapping
from contextlib import aclosing
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies

from dovetail.agent.commands import host
from dovetail.agent.protocols import ToolContext
from dovetail.agent.tools.base import Builtin, parameters, text
from dovetail.agent.types import ToolError, ToolOutput
from dovetail.extras import install

TIMEOUT_S = 30.0
MAX_BYTES = 4 << 20
MAX_REDIRECTS = 5
# A rule that says more of the host than that there is one.
_SITE = re.compile(r"(?:domain:|://)[^/:]*\w")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SILENT = frozenset(("script", "style", "noscript", "template", "svg", "head"))
_BREAKS = frozenset("p div br li tr h1 h2 h3 h4 h5 h6 section article header footer table ul ol pre".split())


async def _fetch(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    try:
        import httpx2
    except ImportError:
        raise ToolError(f"fetching needs httpx2: {install('agent')}") from None
    address = args["url"]
    limit = min(MAX_BYTES, context.limits.max_output_bytes)
    try:
        async with (
            asyncio.timeout(min(TIMEOUT_S, context.limits.timeout_s)),
            httpx2.AsyncClient(follow_redirects=False, headers={"User-Agent": "dovetail"}) as client,
        ):
            for _ in range(MAX_REDIRECTS):
                url = httpx2.URL(address)
                if url.host != host(address):
                    raise ToolError(f"it is not certain which site {address} means")
                place = await _check(address, context)
                # To the address that was checked: asked once more, the name could mean another one.
                request = client.build_request(
                    "GET",
                    url.copy_with(host=place) if place else url,
                    headers={"Host": url.netloc.decode()},
                    extensions={"sni_hostname": url.raw_host.decode()},
                )
                async with aclosing(await client.send(request, stream=True)) as response:
                    if not response.is_redirect:
                        return await _page(response, address, limit)
                    target = urljoin(address, response.headers.get("location", ""))
                if host(target) != host(address):
                    return ToolOutput(f"{address} redirects to another site: {target}. Fetch that if it is wanted.")
                address = target
    except TimeoutError:
        raise ToolError(f"{address} did not answer within {TIMEOUT_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
        raise ToolError(f"{address} cannot be fetched: {error or type(error).__name__}") from error
    raise ToolError(f"{address} redirects too often")


async def _check(address: str, context: ToolContext) -> str:
    """Where to connect to, "" where it does not matter; ToolError if the address may not be fetched."""
    if urlsplit(address).scheme not in ("http", "https") or not host(address):
        raise ToolError("only http and https addresses can be fetched")
    decision = context.permissions.decide("web_fetch", {"url": address}, True)
    if decision.verdict == "deny":
        raise ToolError(f"{address}: {decision.reason}")
    if decision.verdict == "allow" and _SITE.search(decision.rule):  # a rule that names this host
        return ""
    loop = asyncio.get_running_loop()
    places = [entry[4][0] for entry in await loop.getaddrinfo(host(address), None, type=socket.SOCK_STREAM)]
    if not all(_is_public(ipaddress.ip_address(place)) for place in places):
        raise ToolError(f"{host(address)} is an address inside the own network; allow it by a rule to fetch it")
    return "" if getproxies() else str(places[0])


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether the address leads out of the own network, also the one that it wraps for a gateway."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.sixtofour or (ipaddress.IPv4Address(address.packed[12:]) if address in _NAT64 else None)
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast


async def _page(response: Any, address: str, limit: int) -> ToolOutput:
    data = b""
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > limit:
            break
    cut = "\n[cut]" if len(data) > limit else ""
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip()
    if not (kind.startswith("text/") or kind.endswith(("json", "xml", "javascript"))):
        raise ToolError(f"{address} is {kind}, not text")
    body = data[:limit].decode(response.charset_encoding or "utf-8", "replace")
    body = html_text(body) if kind in ("text/html", "application/xhtml+xml") else body
    return ToolOutput(f"[{response.status_code} {address}]\n{body}{cut}", is_error=response.status_code >= 400)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(html: str) -> str:
    """The text of a page, a line for each block."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (line.strip() for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


WEB_FETCH = Builtin(
    "web_fetch",
    "Fetches a web page and returns its text.",
    parameters("url", url=text("an http or https address"), prompt=text("what is looked for in the page")),
    _fetch,
    read_only=True,
)
