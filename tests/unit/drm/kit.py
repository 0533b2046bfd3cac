"""Small Linux machines written in a test: a card or two, a process or two, and the document that comes of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract

if TYPE_CHECKING:
    from pathlib import Path

KIB, MIB, GIB = 1024, 1024**2, 1024**3
BASE = "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t377\n"
HERE = """\
--- proc/self/ns/pid -> pid:[4026531836]
--- proc/999/fd/0 -> /dev/null
--- proc/1/fd/0 -> /dev/null
"""


def card(
    address: str = "0000:03:00.0",
    number: int = 0,
    driver: str = "amdgpu",
    *,
    vendor: str = "1002",
    device: str = "744c",
    status: str = "active",
    files: dict[str, Any] | None = None,
) -> str:
    """A card on the bus: cardN and renderD(128+N), its driver, ids, runtime status and further files."""
    path = f"devices/pci0000:00/{address}"
    nodes = "".join(
        f"--- sys/class/drm/{node} -> ../../{path}/drm/{node}\n"
        f"--- sys/{path}/drm/{node}/dev\n226:{minor}\n"
        f"--- root/dev/dri/{node} rdev=226:{minor}\n"
        for node, minor in ((f"card{number}", number), (f"renderD{128 + number}", 128 + number))
    )
    own = {"class": "0x030000", "vendor": f"0x{vendor}", "device": f"0x{device}", "power/runtime_status": status}
    texts = "".join(f"--- sys/{path}/{name}\n{value}\n" for name, value in {**own, **(files or {})}.items())
    return (
        f"--- sys/bus/pci/devices/{address} -> ../../../{path}\n"
        f"--- sys/bus/pci/drivers/{driver}/{address} -> ../../../../{path}\n"
        f"--- sys/{path}/driver -> ../../../bus/pci/drivers/{driver}\n{nodes}{texts}"
    )


def amdgpu(total: int = 16 * GIB, used: int = 4 * GIB, **more: Any) -> dict[str, Any]:
    """A discrete card's sysfs files."""
    return {
        "mem_info_vram_total": total,
        "mem_info_vram_used": used,
        "mem_info_gtt_total": 32 * GIB,
        "mem_info_gtt_used": 64 * MIB,
        "hwmon/hwmon0/name": "amdgpu",
        **more,
    }


def process(pid: int, fds: dict[int, tuple[str, str]] | None = None, *, ppid: int = 1, name: str = "app") -> str:
    """`fds` maps a descriptor to its target and the text behind fdinfo's first four lines."""
    text = f"--- proc/{pid}/stat\n{pid} ({name}) S {ppid} {pid} {pid} 0 -1 4194560" + " 0" * 12 + " 360000 1 1\n"
    for fd, (target, info) in (fds or {}).items():
        text += f"--- proc/{pid}/fd/{fd} -> {target}\n--- proc/{pid}/fdinfo/{fd}\n{BASE}{info}"
    return text


CARD = "0000:03:00.0"


def amd_client(ident: int, vram: str, gtt: str = "0", *, shared: str = "0", pdev: str | None = CARD) -> str:
    """amdgpu's keys of one client, as Linux 6.14 prints those that matter."""
    sizes = {"resident_vram": vram, "shared_vram": shared, "resident_gtt": gtt, "resident_cpu": "0"}
    return client(ident, "amdgpu", pdev, **sizes)


def client(ident: int, driver: str = "amdgpu", pdev: str | None = "0000:03:00.0", **sizes: str) -> str:
    """fdinfo keys of one client: `client(7, resident_vram="16 MiB")` prints `drm-resident-vram:\t16 MiB`."""
    text = f"drm-driver:\t{driver}\ndrm-client-id:\t{ident}\n"
    if pdev is not None:
        text += f"drm-pdev:\t{pdev}\n"
    return text + "".join(f"drm-{key.replace('_', '-')}:\t{value}\n" for key, value in sizes.items())


def host_of(folder: Path, tree: str, second: str = "", **files: object) -> CapturedHost:
    """A kept machine from the text of its tree; `files` are its JSON files (`ioctls={...}`)."""
    folder.mkdir(exist_ok=True)
    (folder / "tree.txt").write_text(HERE + tree)
    (folder / "tree.2.txt").write_text(second)
    machine = {"own_pid": 999, "uname": {"kernel": "6.14.0"}}
    for name, content in {"machine": machine, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return CapturedHost(folder)


def snapshot(host: CapturedHost, **options: Any) -> dict[str, Any]:
    """The document, held to the contract."""
    document: dict[str, Any] = json.loads(dumps(collect(host, CollectOptions(**options))))
    check_contract(document)
    return document


def row(document: dict[str, Any], pid: int, address: str = "0000:03:00.0") -> dict[str, Any]:
    found = [r for r in document["processes"] if r["pid"] == pid and r["adapter"] == f"pci:{address}"]
    assert len(found) == 1, f"{len(found)} rows of pid {pid}"
    return dict(found[0])


def adapter(document: dict[str, Any], address: str = "0000:03:00.0") -> dict[str, Any]:
    return dict(next(r for r in document["adapters"] if r["id"] == f"pci:{address}"))


def source(document: dict[str, Any], row: dict[str, Any], leaf: str) -> str:
    return str(document["provenance"][row["provenance"]].get(leaf))
