"""Asking a server's local API: only its own socket, only its allow-listed paths, only GET.

The socket must belong to the process tree of the server that is examined: the inode of the listening socket in
`/proc/PID/net/tcp` must be among the descriptors of one of its processes. What listens on a default port for
somebody else is never asked. A server in another network namespace can't be reached from here, and a listener on
an outside address is not contacted through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.host import Host
    from gpusnap.llm.program import Program
    from gpusnap.llm.workload import Workload

TIMEOUT = 1.0
MAX_BODY = 1 << 20
MAX_SOCKET_TABLE = 4 << 20
_LISTEN = b"0A"
_V4 = {b"00000000": "127.0.0.1", b"0100007F": "127.0.0.1"}
_V6 = {
    b"00000000000000000000000000000000": "::1",
    b"00000000000000000000000001000000": "::1",
    b"0000000000000000FFFF000000000000": "127.0.0.1",
    b"0000000000000000FFFF00000100007F": "127.0.0.1",
}


def whole(value: object) -> int | None:
    """A count or size that a machine can have; None for everything else that JSON may hold, booleans among it."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def positive(value: object) -> int | None:
    return whole(value) or None


class Silent(Exception):
    """The API can't be asked or does not answer; `reason` is one of the contract's, the text says why."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Api:
    """One server's API at one address; a path outside its allow-list is a ValueError."""

    def __init__(
        self, host: Host, address: str, port: int, allowed: Iterable[str], key: str | None = None
    ) -> None:
        self._host = host
        self._allowed = frozenset(allowed)
        self._headers = {"Authorization": f"Bearer {key}", "X-Api-Key": key} if key else {}
        self._is_plain = not key or (key.isascii() and key.isprintable())
        self.address = address
        self.port = port

    def text(self, path: str) -> str:
        """The body of a 200; everything else is Silent."""
        if path not in self._allowed:
            raise ValueError(f"not an allow-listed path: {path}")
        if not self._is_plain:
            raise Silent("failed", "the key of --api-key-file is not one line of plain text")
        try:
            reply = self._host.http_get(self.address, self.port, path, self._headers, TIMEOUT, MAX_BODY)
        except TimeoutError as late:
            raise Silent("timeout", f"{path}: no answer within {TIMEOUT:g} s") from late
        except OSError as error:
            raise Silent("failed", f"{path}: {error.strerror or error}") from error
        if reply.status in (401, 403):
            raise Silent("no-permission", f"{path}: needs an API key (--api-key-file)")
        if reply.status != 200:
            raise Silent("failed", f"{path}: HTTP {reply.status}")
        return reply.body.decode("utf-8", "replace")

    def value(self, path: str) -> object:
        import json

        text = self.text(path)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as broken:
            raise Silent("unknown-format", f"{path}: not JSON") from broken

    def json(self, path: str) -> dict[str, object]:
        found = self.value(path)
        if not isinstance(found, dict):
            raise Silent("unknown-format", f"{path}: not a JSON object")
        return found


def find_api(
    host: Host, program: Program, tree: Iterable[int], workload: Workload, paths: Iterable[str], key: str | None
) -> Api:
    """The server's API; Silent where there is none that may be asked."""
    own = _link(host, f"{host.own_pid()}/ns/net")
    theirs = _link(host, f"{program.pid}/ns/net")
    if own is not None and theirs is not None and own != theirs:
        raise Silent("not-exposed", "it is in another network namespace")
    listeners = listening(host, program.pid)
    mine = {port: address for inode, (address, port) in listeners.items() if inode in _sockets(host, tree)}
    port = _choose(workload, mine)
    return Api(host, mine[port], port, paths, key)


def _choose(workload: Workload, mine: dict[int, str]) -> int:
    wanted = workload.port if workload.port is not None else workload.default_port
    if wanted in mine:
        return int(wanted or 0)
    if workload.port is None and len(mine) == 1:
        return next(iter(mine))
    if not mine:
        raise Silent("none", "no listening socket of its own on this machine's loopback")
    raise Silent("ambiguous", f"port {wanted} is not its own")


def listening(host: Host, pid: int) -> dict[int, tuple[str, int]]:
    """Inode -> (loopback address to use, port) of every listener in the process's network namespace."""
    found: dict[int, tuple[str, int]] = {}
    for name, addresses in (("tcp6", _V6), ("tcp", _V4)):
        try:
            table = host.proc.read(f"{pid}/net/{name}", MAX_SOCKET_TABLE)
        except OSError:
            continue
        for line in table.splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != _LISTEN:
                continue
            raw, _, port = fields[1].partition(b":")
            address = addresses.get(raw)
            if address is not None and fields[9].isdigit():
                found[int(fields[9])] = (address, int(port, 16))
    return found


def _sockets(host: Host, tree: Iterable[int]) -> set[int]:
    """Inodes of the sockets that these processes hold; a process that may not be looked into holds none."""
    inodes: set[int] = set()
    for pid in tree:
        try:
            links = host.proc.links(f"{pid}/fd")
        except OSError:
            continue
        for _, target in links:
            if target.startswith("socket:[") and target[8:-1].isdigit():
                inodes.add(int(target[8:-1]))
    return inodes


def _link(host: Host, path: str) -> str | None:
    try:
        return host.proc.readlink(path)
    except OSError:
        return None
