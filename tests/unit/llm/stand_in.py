"""A stand-in server that replays a request trace over a real socket and notes everything that is not in it."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any


class StandIn:
    """`answers` maps a path to a body (JSON or bytes), or to (status, headers, body). Anything else is a fault.

    Only GET over a fresh connection without credentials is in order; the rest lands in `faults`, and so does
    every path that is not in the trace. `asked` holds the paths in order.
    """

    def __init__(self, answers: dict[str, Any], address: str = "127.0.0.1", *, key: str | None = None) -> None:
        self.answers = answers
        self.key = key
        self.asked: list[str] = []
        self.faults: list[str] = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((address, 0))
        self._socket.listen(8)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._open = True

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        socket.create_connection(self._socket.getsockname()[:2], 5).close()
        self._thread.join(10)
        self._socket.close()

    def _serve(self) -> None:
        while self._open:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(5)
                request = b""
                while b"\r\n\r\n" not in request and (part := connection.recv(65536)):
                    request += part
                if request:
                    self._answer(connection, request)

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, *_ = lines[0].split(" ")
        headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:]}
        self.asked.append(path)
        if method != "GET" or body:
            self.faults.append(f"{method} {path} with {len(body)} bytes")
        if self.key is None and {"authorization", "x-api-key", "cookie"} & set(headers):
            self.faults.append(f"credentials for {path}")
        answer = self.answers.get(path)
        if answer is None:
            self.faults.append(f"not in the trace: {path}")
            answer = (404, {}, b"")
        elif self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            answer = (401, {}, b'{"error":{"code":401}}')
        status, extra, content = answer if isinstance(answer, tuple) else (200, {}, answer)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        fields = {"Content-Length": str(len(data)), **extra}
        top = f"HTTP/1.1 {status} X\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in fields.items() if value
        )
        try:
            connection.sendall(top.encode() + b"\r\n" + data)
        except OSError:  # the client had enough
            self.faults.append(f"hung up on {path}")
