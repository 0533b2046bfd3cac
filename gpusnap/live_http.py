"""One GET to a server on this machine, within a deadline and a size.

Written by hand over a socket, because the rules are narrower than what an HTTP library does: the loopback
interface only, no proxy from the environment, no redirect followed, no cookie or credential but what is handed
in, the whole exchange within `timeout` seconds however slowly bytes drip, at most `limit` bytes of body.
HTTP/1.0 is asked for, so that a server ends its answer by closing.
"""

from __future__ import annotations

import errno
import socket
import time
from typing import TYPE_CHECKING

from gpusnap.host import HttpReply

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "::1")
_MAX_HEAD = 65536


def http_get(
    address: str, port: int, path: str, headers: Mapping[str, str], timeout: float, limit: int
) -> HttpReply:
    """Raises OSError, TimeoutError among them; ValueError for an address that is not this machine's loopback."""
    if address not in LOOPBACK or not path.startswith("/") or not _is_plain(path, headers):
        raise ValueError(f"not a plain request to the loopback interface: {address}:{port}{path!r}")
    deadline = time.monotonic() + timeout
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect((address, port))
        host = f"[{address}]" if ":" in address else address
        lines = [f"GET {path} HTTP/1.0", f"Host: {host}:{port}", "Accept: */*", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
        return _reply(_read(connection, deadline, limit), limit)


def _is_plain(path: str, headers: Mapping[str, str]) -> bool:
    """No blank, control character or line break can smuggle a second request."""
    texts = [path.replace(" ", "\0"), *headers, *headers.values()]
    return all(text.isascii() and text.isprintable() for text in texts)


def _read(connection: socket.socket, deadline: float, limit: int) -> bytes:
    data = b""
    while len(data) <= _MAX_HEAD + limit:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(errno.ETIMEDOUT, "the answer did not end in time")
        connection.settimeout(left)
        part = connection.recv(65536)
        if not part or _is_whole(data := data + part):
            break
    return data


def _is_whole(data: bytes) -> bool:
    """The announced length is there: some servers keep the connection open all the same."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    length = _fields(head).get("content-length", "")
    return length.isascii() and length.isdigit() and len(body) >= int(length)


def _fields(head: bytes) -> dict[str, str]:
    fields = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return fields


def _reply(data: bytes, limit: int) -> HttpReply:
    head, found, body = data.partition(b"\r\n\r\n")
    start = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if not found or len(start) < 2 or not start[0].startswith(b"HTTP/1.") or not start[1].isdigit():
        raise OSError(errno.EPROTO, "the answer is not HTTP")
    fields = _fields(head)
    if fields.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunk(body)
    length = fields.get("content-length", "")
    if len(body) > limit or (length.isascii() and length.isdigit() and int(length) > limit):
        raise OSError(errno.EFBIG, f"the answer is larger than {limit} bytes")
    return HttpReply(int(start[1]), body)


def _unchunk(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        try:
            count = int(size.split(b";", 1)[0], 16)
        except ValueError as broken:
            raise OSError(errno.EPROTO, "the answer is not HTTP") from broken
        if count <= 0:
            break
        whole += body[:count]
        body = body[count + 2 :]
    return whole
