"""Only the server's own user is served: foreign names, foreign pages and missing tokens are refused at once."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from typing import Any

import pytest

from diffassemble.web.guard import Guard, is_loopback
from diffassemble.web.server import Workbench

TOKEN = "t" * 43
OWN = {"host": "127.0.0.1:8080", "cookie": f"diffassemble-8080={TOKEN}"}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers everything that reaches it."""
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    if message["type"] != "http.disconnect":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"secret"})


def asked(
    headers: dict[str, str], query: str = "", host: str = "127.0.0.1", kind: str = "http", chunks: int = 1
) -> list[dict[str, Any]]:
    """What is answered to a request."""
    answers: list[dict[str, Any]] = []
    left = iter(range(chunks - 1, -1, -1))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": next(left) > 0}

    async def send(message: Any) -> None:
        answers.append(dict(message))

    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": "/", "query_string": query.encode(), "headers": given}
    asyncio.run(Guard(application, host, 8080, TOKEN)(scope, receive, send))
    return answers


ADMITTED = [{}, {"host": "localhost:8080"}, {"host": "[::1]:8080"}, {"origin": "http://127.0.0.1:8080"}]
REFUSED = [
    *({"cookie": cookie} for cookie in ("", f"diffassemble-8081={TOKEN}")),
    *({"host": host} for host in ("127.0.0.1:8081", "127.0.0.1", "127.0.0.1:8080@evil", "192.168.1.7:8080")),
    *({"origin": origin} for origin in ("http://evil.example.com", "null", "http://localhost:8080")),
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
]


@pytest.mark.parametrize(
    ("changed", "query", "host", "status"),
    [
        *((changed, "", "127.0.0.1", 200) for changed in ADMITTED),
        *((changed, "", "127.0.0.1", 403) for changed in REFUSED),
        ({"cookie": ""}, f"token={TOKEN}", "127.0.0.1", 303),
        ({"cookie": ""}, "token=wrong", "127.0.0.1", 403),
        ({"host": "evil.example.com:8080"}, f"token={TOKEN}", "127.0.0.1", 403),
        ({"host": "evil.example.com:8080"}, "", "0.0.0.0", 403),
        *(({"host": "192.168.1.7:8080"}, "", host, 200) for host in ("0.0.0.0", "192.168.1.7")),
    ],
)
def test_who_is_let_in(changed: dict[str, str], query: str, host: str, status: int) -> None:
    answers = asked({**OWN, **changed}, query, host)
    assert answers[0]["status"] == status
    assert (b"secret" in answers[-1]["body"]) is (status == 200)
    assert status != 200 or (b"x-frame-options", b"DENY") in answers[0]["headers"]


def test_websockets_are_closed_before_anything_is_sent() -> None:
    for headers in ({**OWN, "origin": "http://evil.example.com"}, {**OWN, "host": "evil:8080"}, {"host": OWN["host"]}):
        assert [answer["type"] for answer in asked(headers, kind="websocket")] == ["websocket.close"]
    # A token in the address is for people, not for websockets.
    assert asked({"host": OWN["host"]}, f"token={TOKEN}", kind="websocket")[0]["type"] == "websocket.close"


def test_the_token_goes_from_the_address_into_a_cookie() -> None:
    start = asked({"host": OWN["host"]}, f"a=1&token={TOKEN}")[0]
    headers = dict(start["headers"])
    assert headers[b"location"] == b"/?a=1"
    for part in (b"HttpOnly", b"SameSite=strict", TOKEN.encode()):
        assert part in headers[b"set-cookie"]


def test_long_requests_are_cut_off() -> None:
    assert asked(OWN, chunks=10)[0]["status"] == 200
    assert asked(OWN, chunks=100) == []
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "127.8.0.1")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.7")))


def raw(workbench: Workbench, path: str, headers: dict[str, str], method: str = "GET") -> bytes:
    """The answer to a request as it is written, without a library that would mend it."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    with socket.create_connection(("127.0.0.1", workbench.port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.recv(4096)


def test_the_server_itself(workbench: Workbench) -> None:
    own = f"127.0.0.1:{workbench.port}"
    cookie = f"diffassemble-{workbench.port}={workbench.token}"
    key = base64.b64encode(os.urandom(16)).decode()
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    user = {"Host": own, "Cookie": cookie}
    good = {**user, "Origin": f"http://{own}", **upgrade}
    for where, headers, status in (
        ("/", {"Host": own}, 403),
        ("/", {**user, "Host": "evil.example.com"}, 403),
        (f"/?token={workbench.token}", {"Host": own}, 303),
        (path, good, 101),
        *(
            (path, {**good, **bad}, 403)
            for bad in ({"Origin": "http://evil"}, {"Host": "evil.example"}, {"Cookie": ""})
        ),
        (path.replace("websocket", "polling"), {**user, "Origin": "http://evil"}, 403),
    ):
        assert raw(workbench, where, headers).startswith(b"HTTP/1.1 %d" % status), (where, headers)
    upload = raw(workbench, "/work/unknown/upload?name=a", {**user, "Content-Length": "0"}, "POST")
    assert upload.startswith(b"HTTP/1.1 404")
