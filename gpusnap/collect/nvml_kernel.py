"""What NVIDIA's kernel module says without NVML: `/proc/driver/nvidia`.

Wakes no card. `gpus/<PCI address>/information` keeps a lost card's name and UUID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.reading import Reading, measured
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.host import Host


class CardFile(NamedTuple):
    pci_address: str
    model: Reading | None
    uuid: Reading | None


def card_files(host: Host) -> list[CardFile]:
    try:
        addresses = sorted(host.proc.listdir("driver/nvidia/gpus"))
    except OSError:
        return []
    return [_card_file(host, address) for address in addresses]


def _card_file(host: Host, address: str) -> CardFile:
    try:
        text = host.proc.read(f"driver/nvidia/gpus/{address}/information").decode("utf-8", "replace")
    except OSError:
        text = ""
    values = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        values[key.strip()] = clean(value.strip())
    uuid = values.get("GPU UUID", "")
    model = values.get("Model", "")
    source = "proc.driver.nvidia.gpus"
    return CardFile(
        address.lower(),
        measured(model, source) if model and not model.startswith("Unknown") else None,
        measured(uuid, source) if uuid.startswith("GPU-") and "?" not in uuid else None,
    )


def driver_version(host: Host) -> str | None:
    """`NVRM version: NVIDIA UNIX x86_64 Kernel Module  460.56  Tue Feb ...` -> `460.56`; open modules too."""
    try:
        line = host.proc.read("driver/nvidia/version").decode("utf-8", "replace").split("\n", 1)[0]
    except OSError:
        return None
    for word in line.split():
        if word[0].isdigit() and "." in word and word.replace(".", "").isdigit():
            return word
    return None


def system_memory(host: Host) -> int | None:
    """MemTotal in bytes."""
    try:
        text = host.proc.read("meminfo", 4096)
    except OSError:
        return None
    for line in text.split(b"\n")[:-1]:
        fields = line.split()
        if line.startswith(b"MemTotal:") and len(fields) > 1 and fields[1].isdigit():
            kib = int(fields[1])
            return None if kib >> 43 else kib * 1024  # 2^53 bytes and more are nobody's
    return None
