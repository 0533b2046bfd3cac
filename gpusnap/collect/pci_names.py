"""A card's marketing name from the tables that distributions ship, or its ids.

Neither table is guaranteed: `pci.ids` is missing on a bare Debian, and libdrm's `amdgpu.ids` knows only cards
older than itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.host import Host

_AMDGPU_IDS = ("usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids")
_PCI_IDS = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids")
_LIMIT = 4 << 20
_MAKERS = {"1002": "AMD", "1022": "AMD", "8086": "Intel", "10de": "NVIDIA", "19e5": "Huawei"}


class NameTables:
    """The tables, each read at most once, when a card asks for its name."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._read: dict[tuple[str, ...], bytes] = {}

    def name(self, vendor: str, device: str, revision: str | None, what: str) -> str:
        """`AMD Radeon RX 6800`, else `Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]`, else `AMD GPU 1002:73bf`.

        `what` is GPU or NPU, for a part without a name.
        """
        name = None
        if vendor == "1002" and revision is not None:
            name = _amdgpu_name(self._table(_AMDGPU_IDS), device, revision)
        if name is None:
            name = _pci_name(self._table(_PCI_IDS), vendor, device)
        return nameless(vendor, device, what) if name is None else name

    def _table(self, paths: tuple[str, ...]) -> bytes:
        if paths not in self._read:
            self._read[paths] = b""
            for path in paths:
                try:
                    self._read[paths] = self._host.root.read(path, _LIMIT)
                    break
                except OSError:
                    continue
        return self._read[paths]


def nameless(vendor: str, device: str, what: str) -> str:
    """`NVIDIA GPU 10de:2684`: a part that no table names."""
    maker = _MAKERS.get(vendor)
    return f"{maker} {what} {vendor}:{device}" if maker is not None else f"{what} {vendor}:{device}"


def _amdgpu_name(table: bytes, device: str, revision: str) -> str | None:
    """Lines `73BF,\\tC3,\\tAMD Radeon RX 6800`: device and revision name a product."""
    wanted = f"{device},{revision}".upper().encode()
    for line in table.splitlines():
        if line.startswith(b"#"):
            continue
        fields = line.split(b",", 2)
        if len(fields) == 3 and b",".join(part.strip() for part in fields[:2]).upper() == wanted:
            return clean(fields[2].strip(), 128) or None
    return None


def _pci_name(table: bytes, vendor: str, device: str) -> str | None:
    """Vendors stand at the left edge, `1002  Advanced ...`, devices after one tab, `\\t73bf  Navi 21`."""
    table = b"\n" + table
    start = table.find(f"\n{vendor}  ".encode())
    while start >= 0:
        start = table.find(b"\n", start + 1)
        line = table[start + 1 : start + 160].split(b"\n", 1)[0]
        if not line.startswith((b"\t", b"#")):
            return None
        if line.startswith(f"\t{device}  ".encode()):
            return clean(line[7:].strip(), 128) or None
    return None
