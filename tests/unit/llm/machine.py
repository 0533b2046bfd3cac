"""Captured machines with model servers: NVIDIA cards, processes with their files, logs and local APIs."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract
from tests.unit.collect.machine import process

if TYPE_CHECKING:
    from pathlib import Path

    from gpusnap.model import Process, Snapshot

MIB = 1 << 20
GIB = 1 << 30
# A listening socket in /proc/net/tcp: 127.0.0.1 (or 0.0.0.0) and its port, state 0A, uid 1000, inode.
_SOCKET = "   0: {address}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 {inode} 1\n"
_TCP = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


class Machine:
    """`card` and `server` add to it; `snapshot` takes one and holds the contract's invariants against it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = ["--- proc/self/ns/pid -> pid:[4026531836]\n"]
        self.calls: dict[str, Any] = {"nvmlSystemGetDriverVersion": "580.95.05"}
        self.held: list[dict[int, int]] = []
        self.http: dict[str, Any] = {}
        self.machine: dict[str, Any] = {"platform": "linux", "own_pid": 99999, "users": {"1000": "alice"}}

    def card(self, total: int, name: str = "NVIDIA GeForce RTX 4080 SUPER", used: int | None = None) -> None:
        number = len(self.held)
        self.held.append({})
        used = total if used is None else used
        self.calls |= {
            "nvmlDeviceGetCount": number + 1,
            f"nvmlDeviceGetHandleByIndex {number}": None,
            f"nvmlDeviceGetName {number}": name,
            f"nvmlDeviceGetUUID {number}": f"GPU-aaaaaaaa-0000-4000-8000-00000000000{number}",
            f"nvmlDeviceGetPciInfo_v3 {number}": {"busId": f"00000000:0{number + 1}:00.0"},
            f"nvmlDeviceGetMemoryInfo_v2 {number}": {
                "total": total,
                "reserved": 0,
                "free": total - used,
                "used": used,
            },
        }

    def process(
        self,
        pid: int,
        words: list[str],
        held: dict[int, int] | None = None,
        *,
        comm: str | None = None,
        ppid: int = 1,
        cwd: str = "/home/alice",
        maps: list[str] | None = None,
        environ: dict[str, str] | None = None,
        links: dict[str, str] | None = None,
    ) -> None:
        """A process; `held` maps a card's number to bytes, `links` descriptors to targets."""
        exe = words[0] if words[0].startswith("/") else f"/usr/bin/{words[0]}"
        name = comm if comm is not None else exe.rpartition("/")[2][:15]
        cmdline = "".join(word.replace("\\", "\\\\") + "\\0" for word in words)
        text = process(pid, name, cmdline=cmdline, exe=exe, ppid=ppid)
        text = text.replace(f"--- proc/{pid}/cwd -> /home/alice/run\n", f"--- proc/{pid}/cwd -> {cwd}\n")
        self.tree.append(text)
        rows = [
            f"7f{n:010x}-7f{n + 1:010x} r--s 00000000 fe:00 {n + 9}   {path}\n"
            for n, path in enumerate(maps or [])
        ]
        self.tree.append(f"--- proc/{pid}/maps\n" + "".join(rows))
        if environ is not None:
            raw = "".join(f"{key}={value}".replace("\\", "\\\\") + "\\0" for key, value in environ.items())
            self.tree.append(f"--- proc/{pid}/environ escaped\n{raw}\n")
        for number, target in (links or {}).items():
            self.tree.append(f"--- proc/{pid}/fd/{number} -> {target}\n")
        for card, nbytes in (held or {}).items():
            self.held[card][pid] = nbytes

    def listen(
        self, pid: int, port: int, *, inode: int, owner: int | None = None, address: str = "0100007F"
    ) -> None:
        """A listening socket that process `owner` holds, seen in the network namespace of `pid`."""
        row = _SOCKET.format(address=address, port=port, inode=inode)
        self.tree.append(f"--- proc/{pid}/net/tcp\n{_TCP}{row}")
        if owner is None or owner == pid:
            self.tree.append(f"--- proc/{pid}/fd/77 -> socket:[{inode}]\n")

    def file(self, path: str, data: bytes, size: int | None = None) -> None:
        option = f" size={size}" if size is not None else ""
        text = base64.b64encode(data).decode()
        self.tree.append(f"--- root{path} base64{option}\n{text}\n")

    def entry(self, text: str) -> None:
        self.tree.append(text)

    def host(self) -> CapturedHost:
        for number, held in enumerate(self.held):
            rows = [{"pid": pid, "usedGpuMemory": nbytes} for pid, nbytes in held.items()]
            self.calls[f"nvmlDeviceGetComputeRunningProcesses_v3 {number}"] = rows
            self.calls[f"nvmlDeviceGetGraphicsRunningProcesses_v3 {number}"] = []
            self.calls[f"nvmlDeviceGetMPSComputeRunningProcesses_v3 {number}"] = []
        (self.folder / "tree.txt").write_text("".join(self.tree))
        (self.folder / "machine.json").write_text(json.dumps(self.machine))
        (self.folder / "nvml.json").write_text(json.dumps({"version": "13.615.71", "calls": self.calls}))
        (self.folder / "http.json").write_text(json.dumps(self.http))
        return CapturedHost(self.folder)

    def collector(self, host: CapturedHost | None = None, **options: Any) -> Collector:
        return Collector(host if host is not None else self.host(), CollectOptions(**options))

    def snapshot(self, host: CapturedHost | None = None, **options: Any) -> Snapshot:
        document: Snapshot = json.loads(dumps(self.collector(host, **options).sample()))
        check_contract(document)  # type: ignore[arg-type]
        return document


def row_of(document: Snapshot, pid: int, adapter: int = 0) -> Process:
    rows = document["processes"] or []
    card = document["adapters"][adapter]["id"]
    return next(row for row in rows if row["pid"] == pid and row["adapter"] == card)


def facts(group: object, *names: str) -> dict[str, Any]:
    """These leaves of `llm` or `model`."""
    assert isinstance(group, dict)
    return {name: group[name] for name in names}


def in_mib(group: object, *names: str) -> dict[str, int | None]:
    return {name: value if value is None else round(value / MIB) for name, value in facts(group, *names).items()}


def sources_of(document: Snapshot, row: Process) -> dict[str, str]:
    return document["provenance"][row["provenance"]]
