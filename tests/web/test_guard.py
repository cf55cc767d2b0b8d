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
    left = [chunks]

    async def receive() -> dict[str, Any]:
        left[0] -= 1
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": left[0] > 0}

    async def send(message: Any) -> None:
        answers.append(dict(message))

    told = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": "/", "query_string": query.encode(), "headers": told}
    asyncio.run(Guard(application, host, 8080, TOKEN)(scope, receive, send))
    return answers


@pytest.mark.parametrize(
    ("changed", "query", "host", "status"),
    [
        ({}, "", "127.0.0.1", 200),
        ({"host": "localhost:8080"}, "", "127.0.0.1", 200),
        ({"host": "[::1]:8080"}, "", "127.0.0.1", 200),
        ({"origin": "http://127.0.0.1:8080"}, "", "127.0.0.1", 200),
        ({"cookie": ""}, f"token={TOKEN}", "127.0.0.1", 303),
        ({"cookie": ""}, "", "127.0.0.1", 403),
        ({"cookie": ""}, "token=wrong", "127.0.0.1", 403),
        ({"cookie": f"diffassemble-8081={TOKEN}"}, "", "127.0.0.1", 403),
        ({"host": "evil.example.com:8080"}, f"token={TOKEN}", "127.0.0.1", 403),
        ({"host": "127.0.0.1:8081"}, "", "127.0.0.1", 403),
        ({"host": "127.0.0.1"}, "", "127.0.0.1", 403),
        ({"host": "127.0.0.1:8080@evil"}, "", "127.0.0.1", 403),
        ({"host": "192.168.1.7:8080"}, "", "127.0.0.1", 403),
        ({"host": "192.168.1.7:8080"}, "", "0.0.0.0", 200),
        ({"host": "evil.example.com:8080"}, "", "0.0.0.0", 403),
        ({"host": "192.168.1.7:8080"}, "", "192.168.1.7", 200),
        ({"origin": "http://evil.example.com"}, "", "127.0.0.1", 403),
        ({"origin": "null"}, "", "127.0.0.1", 403),
        ({"origin": "http://localhost:8080"}, "", "127.0.0.1", 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, "", "127.0.0.1", 403),
    ],
)
def test_who_is_let_in(changed: dict[str, str], query: str, host: str, status: int) -> None:
    answers = asked({**OWN, **changed}, query, host)
    assert answers[0]["status"] == status
    assert (b"secret" in answers[-1]["body"]) is (status == 200)
    if status != 200:
        return
    assert (b"x-frame-options", b"DENY") in answers[0]["headers"]


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
    assert [is_loopback(host) for host in ("127.0.0.1", "localhost", "127.8.0.1", "0.0.0.0", "192.168.1.7")] == [
        *(True, True, True, False, False)
    ]


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
    assert raw(workbench, "/", {"Host": own}).startswith(b"HTTP/1.1 403")
    assert raw(workbench, "/", {"Host": "evil.example.com", "Cookie": cookie}).startswith(b"HTTP/1.1 403")
    assert raw(workbench, f"/?token={workbench.token}", {"Host": own}).startswith(b"HTTP/1.1 303")
    good = {"Host": own, "Cookie": cookie, "Origin": f"http://{own}", **upgrade}
    assert raw(workbench, path, good).startswith(b"HTTP/1.1 101")
    for changed in ({"Origin": "http://evil.example.com"}, {"Host": "evil.example.com"}, {"Cookie": ""}):
        answer = raw(workbench, path, {**good, **changed})
        assert answer.startswith(b"HTTP/1.1 403"), answer
    polling = raw(
        workbench, path.replace("websocket", "polling"), {"Host": own, "Origin": "http://evil", "Cookie": cookie}
    )
    assert polling.startswith(b"HTTP/1.1 403")
    upload = raw(
        workbench, "/work/nobody/upload?name=a", {"Host": own, "Cookie": cookie, "Content-Length": "0"}, "POST"
    )
    assert upload.startswith(b"HTTP/1.1 404")
