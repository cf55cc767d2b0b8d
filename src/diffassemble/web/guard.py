"""Who may use the server: only its own user, from a page that it served itself, over HTTP and websockets alike.

*Host* must be a name of this server, which no other site can lend it. *Origin*, where browsers send it, must be the
server itself. The printed *token* must be there: in the address once, then in a cookie that no other site sees.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diffassemble.web import CONFIG

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ANYWHERE = frozenset({"0.0.0.0", "::"})
# No other site may show the page within a page, or learn its address; nothing is loaded from elsewhere.
_HEADERS = {
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'",
}
_NEVER = {"cache-control": "no-store"}
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

    def __init__(self, app: ASGIApp, host: str, port: int, token: str) -> None:
        self.app, self.host, self.port, self.token = app, host.lower(), port, token
        # Cookies are shared by all ports of a machine.
        self.cookie = f"diffassemble-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application do so."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        asked, why = HTTPConnection(scope), self.wrong_with(scope)
        if why is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": why})
        elif why is not None:
            title, text = _REASONS[why]
            page = HTMLResponse(_PAGE.format(title=title, text=text), 403, _NEVER)
            await page(scope, receive, _with_headers(send))
        elif scope["type"] == "http" and "token" in asked.query_params:
            # The same address without its token, which a cookie has from now on. A path that begins with two slashes
            # would be another server's.
            rest = urlencode([pair for pair in asked.query_params.multi_items() if pair[0] != "token"])
            target = "/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else "")
            moved = RedirectResponse(target, 303, _NEVER)
            moved.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            await moved(scope, receive, _with_headers(send))
        else:
            await self.app(scope, _limited(scope, receive), _with_headers(send))

    def wrong_with(self, scope: Scope) -> str | None:
        """Why a request is refused; nothing if it may pass."""
        asked = HTTPConnection(scope)
        hosts, origin = asked.headers.getlist("host"), asked.headers.get("origin")
        if len(hosts) != 1 or not self._is_own_name(hosts[0]):
            return "host"
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return "origin"
        # Pages of other sites may send the reader here by a link, and only so.
        if asked.headers.get("sec-fetch-site") == "cross-site" and asked.headers.get("sec-fetch-mode") != "navigate":
            return "origin"
        # Addresses of websockets are written into logs, so only those of pages carry the token.
        given = asked.query_params.getlist("token") if scope["type"] == "http" else []
        given += [asked.cookies[self.cookie]] if self.cookie in asked.cookies else []
        return None if any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given) else "token"

    def _is_own_name(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
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


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Requests that are no uploads, which count themselves, may bring little."""
    if scope["type"] != "http" or scope["path"].endswith("/upload"):
        return receive
    arrived = 0

    async def limited() -> Message:
        nonlocal arrived
        message = await receive()
        arrived += len(message.get("body", b""))
        return {"type": "http.disconnect"} if arrived > CONFIG.request else message

    return limited


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return sent
