"""The HTTP client that may ask a local server: narrower on purpose than any library's."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.live import LiveHost
from gpusnap.live_http import http_get
from tests.unit.llm.stand_in import StandIn

if TYPE_CHECKING:
    from pathlib import Path


def test_gets_one_answer_and_says_nothing_about_us() -> None:
    with StandIn({"/props": {"total_slots": 4}}) as server:
        reply = LiveHost().http_get("127.0.0.1", server.port, "/props", {}, 1.0, 1 << 20)
    assert (reply.status, reply.body) == (200, b'{"total_slots": 4}')
    assert server.asked == ["/props"]
    assert server.faults == []


def test_speaks_to_the_ipv6_loopback() -> None:
    with StandIn({"/health": b"ok"}, "::1") as server:
        assert http_get("::1", server.port, "/health", {}, 1.0, 100).body == b"ok"


@pytest.mark.parametrize("address", ["192.0.2.1", "0.0.0.0", "localhost", "127.0.0.1:80@192.0.2.1", ""])  # noqa: S104
def test_refuses_every_address_but_the_loopback(address: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        http_get(address, 80, "/", {}, 1.0, 100)


@pytest.mark.parametrize("path", ["props", "/a b", "/a\r\nX: y", "/ä"])
def test_refuses_a_path_that_could_carry_a_second_request(path: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        http_get("127.0.0.1", 80, path, {}, 1.0, 100)


def test_does_not_follow_a_redirect() -> None:
    with (
        StandIn({"/": b"elsewhere"}) as other,
        StandIn({"/props": (302, {"Location": f"http://127.0.0.1:{other.port}/"}, b"")}) as server,
    ):
        assert http_get("127.0.0.1", server.port, "/props", {}, 1.0, 100).status == 302
    assert other.asked == []


def test_uses_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn({}) as proxy, StandIn({"/props": b"{}"}) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert http_get("127.0.0.1", server.port, "/props", {}, 1.0, 100).body == b"{}"
    assert proxy.asked == []


def test_stops_reading_a_body_over_the_limit() -> None:
    with StandIn({"/x": b"a" * 300_000}) as server, pytest.raises(OSError, match="larger") as caught:
        http_get("127.0.0.1", server.port, "/x", {}, 1.0, 100_000)
    assert caught.value.errno == errno.EFBIG


def test_puts_chunks_together() -> None:
    chunks = b'4\r\n{"a"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n'
    answer = (200, {"Transfer-Encoding": "chunked", "Content-Length": ""}, chunks)
    with StandIn({"/x": answer}) as server:
        assert http_get("127.0.0.1", server.port, "/x", {}, 1.0, 100).body == b'{"a":1}'


def test_an_answer_that_is_not_http_is_an_error() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def speak() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    threading.Thread(target=speak, daemon=True).start()
    with listener, pytest.raises(OSError, match="not HTTP"):
        http_get("127.0.0.1", listener.getsockname()[1], "/", {}, 1.0, 100)


def test_the_deadline_holds_for_an_answer_that_drips() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                for _ in range(100):
                    connection.sendall(b"H")
                    time.sleep(0.05)
            except OSError:
                return

    threading.Thread(target=drip, daemon=True).start()
    began = time.monotonic()
    with listener, pytest.raises(TimeoutError):
        http_get("127.0.0.1", listener.getsockname()[1], "/", {}, 0.3, 100)
    assert 0.25 < time.monotonic() - began < 4, "all of it takes five seconds"


def test_a_kept_machine_answers_from_its_file_and_refuses_the_rest(tmp_path: Path) -> None:
    (tmp_path / "http.json").write_text(
        '{"127.0.0.1:8080/props": {"body": {"total_slots": 1}}, "127.0.0.1:8080/slow": {"errno": "ETIMEDOUT"},'
        ' "127.0.0.1:8080/key": {"key": "k", "body": "in"}}'
    )
    host = CapturedHost(tmp_path)
    assert host.http_get("127.0.0.1", 8080, "/props", {}, 1.0, 100).body == b'{"total_slots": 1}'
    assert host.http_get("127.0.0.1", 8080, "/key", {}, 1.0, 100).status == 401
    assert host.http_get("127.0.0.1", 8080, "/key", {"Authorization": "Bearer k"}, 1.0, 100).body == b"in"
    with pytest.raises(TimeoutError):
        host.http_get("127.0.0.1", 8080, "/slow", {}, 1.0, 100)
    with pytest.raises(ConnectionRefusedError):
        host.http_get("127.0.0.1", 8080, "/other", {}, 1.0, 100)
    assert host.requests[0] == "127.0.0.1:8080/props"
