"""Who may use the server: only its own user, from a page that it served itself.

Three things are checked before anything is answered, over HTTP and websockets alike. *Host* must be a name of this
server, so that no other site can lend it its own name. *Origin*, which browsers add to what a page does, must be the
server itself, so that no page of another site can use it. The *token*, which is printed with the address, must be
there, in the address once, then in a cookie that no script and no other site sees.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ANYWHERE = frozenset({"0.0.0.0", "::"})
# Bytes of a request that is no upload.
_MOST_BYTES = 2_000_000
# Nobody else may show the page within a page, or learn its address; nothing is loaded from elsewhere.
_HEADERS = (
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'none'; form-action 'self'",
    ),
)
_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>DiffAssemble</title><style>body {{ font: 18px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 4rem auto;
padding: 0 1rem; color: #2b2f36; background: #fafaf8 }}</style><h1>{title}</h1><p>{text}</p></html>"""
_REASONS = {
    "host": ("Not under this name", "Open the address that <code>diffassemble serve</code> printed."),
    "origin": ("Not from another site", "Another web page asked for this. Open the printed address itself."),
    "token": (
        "The address lacks its token",
        "Open the whole address that <code>diffassemble serve</code> printed, with everything after the question mark.",
    ),
}


class Guard:
    """Lets through to an application what its user asks for; everything else is refused."""

    def __init__(self, app: App, host: str, port: int, token: str) -> None:
        self.app, self.host, self.port, self.token = app, host.lower(), port, token
        # Cookies are shared by all ports of a machine.
        self.cookie = f"diffassemble-{port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer, or let the application do so."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        wrong = self.wrong_with(scope)
        if wrong is not None:
            await _refuse(scope, send, wrong)
        elif scope["type"] == "http" and "token" in dict(parse_qsl(scope["query_string"].decode("latin-1"))):
            await _redirect(scope, send, f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict")
        else:
            await self.app(scope, _limited(scope, receive), _with_headers(send))

    def wrong_with(self, scope: Message) -> str | None:
        """Why a request is refused; nothing if it may pass."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._is_own_name(headers["host"]):
            return "host"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
            return "origin"
        # Pages of other sites may send the reader here by a link, and only so.
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "origin"
        given = [*_cookies(headers.get("cookie", ""), self.cookie), *_query_tokens(scope)]
        return None if any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given) else "token"

    def _is_own_name(self, host: str) -> bool:
        try:
            told = urlsplit(f"//{host}")
            name, port = (told.hostname or "").lower(), told.port or 80
        except ValueError:
            return False
        if port != self.port or "@" in host:
            return False
        if name in _LOOPBACK or name == self.host:
            return True
        # Who listens everywhere is reached by numbers, which no other site can lend, or by the machine's own name.
        own = socket.gethostname().lower()
        return self.host in _ANYWHERE and (_is_number(name) or name in (own, f"{own}.local"))


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches a server that listens there."""
    return host.lower() in _LOOPBACK or (_is_number(host) and ipaddress.ip_address(host).is_loopback)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookies(header: str, name: str) -> Iterator[str]:
    jar = SimpleCookie()
    try:
        jar.load(header)
    except CookieError:
        return
    if name in jar:
        yield jar[name].value


def _query_tokens(scope: Message) -> Iterator[str]:
    """Tokens in the address; websockets have none, since their addresses are written into logs."""
    if scope["type"] == "http":
        yield from (value for key, value in parse_qsl(scope["query_string"].decode("latin-1")) if key == "token")


async def _refuse(scope: Message, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    title, text = _REASONS[why]
    body = _PAGE.format(title=title, text=text).encode()
    await _answer(send, 403, [(b"content-type", b"text/html; charset=utf-8")], body)


async def _redirect(scope: Message, send: Send, cookie: str) -> None:
    """The same address without its token, which a cookie has from now on."""
    rest = [(key, value) for key, value in parse_qsl(scope["query_string"].decode("latin-1")) if key != "token"]
    # A path that begins with two slashes would be another server's.
    path = "/" + scope["path"].lstrip("/")
    target = path + (f"?{urlencode(rest)}" if rest else "")
    where = [(b"location", target.encode("ascii", "replace")), (b"set-cookie", cookie.encode())]
    await _answer(send, 303, where, b"")


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _limited(scope: Message, receive: Receive) -> Receive:
    """Requests that are no uploads, which count themselves, may bring little."""
    if scope["type"] != "http" or scope["path"].endswith("/upload"):
        return receive
    arrived = 0

    async def limited() -> Message:
        nonlocal arrived
        message = await receive()
        arrived += len(message.get("body", b""))
        return {"type": "http.disconnect"} if arrived > _MOST_BYTES else message

    return limited


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        await send(message)

    return sent
