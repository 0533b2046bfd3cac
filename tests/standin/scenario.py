"""Writes the file that the stand-in NVML plays; `scenario.h` tells its format and `figures.c` its keys."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.standin.library import build, build_cuda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNAVAILABLE = "n/a"
"""As a figure: the driver's all-ones "value not available"."""
FOREVER = -1
"""As a delay: the call never returns."""

GIB = 1 << 30

# What an idle H100 answers. Temperature sensor 0 is the GPU's; clocks are graphics, SM, memory, video; PCIe
# throughput 0 is sent, 1 received, in kB/s; power in mW, energy in mJ. Field 82 is the memory's temperature.
H100: dict[str, str | int | bytes] = {
    "brand": 14,
    "architecture": 9,
    "capability.major": 9,
    "capability.minor": 0,
    "serial": "1650123456789",
    "board_id": 0x100,
    "multi_gpu_board": 0,
    "persistence": 1,
    "compute_mode": 0,
    "display.mode": 0,
    "display.active": 0,
    "pstate": 0,
    "virtualization": 0,
    "pci.device_id": 0x233010DE,
    "pci.subsystem_id": 0x16C110DE,
    "utilization.gpu": 0,
    "utilization.memory": 0,
    "utilization.encoder": 0,
    "utilization.decoder": 0,
    "utilization.jpg": 0,
    "utilization.ofa": 0,
    "utilization.period": 167000,
    "temperature.0": 31,
    "threshold.0": 95,
    "threshold.1": 92,
    "field.82": "uint 42",
    "power.usage": 71_250,
    "power.enforced_limit": 700_000,
    "power.limit": 700_000,
    "power.default_limit": 700_000,
    "energy": 123_456_789,
    "clock.0": 345,
    "clock.1": 345,
    "clock.2": 2619,
    "clock.3": 795,
    "max_clock.0": 1980,
    "max_clock.1": 1980,
    "max_clock.2": 2619,
    "max_clock.3": 1545,
    "clocks.reasons": 1,
    "clocks.supported_reasons": 0x1FF,
    "pcie.generation": 5,
    "pcie.max_generation": 5,
    "pcie.width": 16,
    "pcie.max_width": 16,
    "pcie.kbps.0": 1500,
    "pcie.kbps.1": 250,
    "pcie.replays": 0,
    "ecc.current": 1,
    "ecc.pending": 1,
    "ecc.corrected.volatile": 0,
    "ecc.corrected.aggregate": 0,
    "ecc.uncorrected.volatile": 0,
    "ecc.uncorrected.aggregate": 0,
    "remapped.corrected": 0,
    "remapped.uncorrected": 0,
    "remapped.pending": 0,
    "remapped.failed": 0,
    "bar1.total": 128 * GIB,
    "bar1.used": 1 << 20,
    "bar1.free": 128 * GIB - (1 << 20),
    "mig.current": 0,
    "mig.pending": 0,
}


@dataclass
class Proc:
    """A row of one of the driver's lists; `bytes` None is the driver's "not available", as under WDDM."""

    pid: int
    bytes: int | None
    kind: str = "compute"
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass
class Sample:
    """What a process kept busy; `age` seconds before the question, or at `time_us` since 1970."""

    pid: int
    sm: int = 0
    memory: int = 0
    encoder: int = 0
    decoder: int = 0
    jpg: int = 0
    ofa: int = 0
    age: float = 0.1
    time_us: int | None = None


@dataclass
class Retired:
    """A retired page; `cause` 0 is several single-bit errors, 1 a double-bit error."""

    address: int
    cause: int = 0
    time: int = 0


class Device:
    """What a card and a partition have in common: figures, processes and faults."""

    def __init__(self, figures: dict[str, str | int | bytes], processes: Iterable[Proc]) -> None:
        self.figures = figures
        self.processes = list(processes)
        self.samples: list[Sample] = []
        self.retired: list[Retired] | None = None
        self.faults: list[str] = []

    def set(self, **figures: str | int | bytes) -> None:
        """`set(power__usage=1)` sets `power.usage`."""
        self.figures.update({key.replace("__", "."): value for key, value in figures.items()})

    def drop(self, *keys: str) -> None:
        """The card has no such thing: its call answers NVML_ERROR_NOT_SUPPORTED."""
        for key in keys:
            del self.figures[key]

    def memory(self, total: int, used: int, reserved: int, *, inside: bool = False) -> None:
        """`inside`: used counts the reserved part, so that used + free = total. Else the three make the total.

        The first version of the call always counts it into used.
        """
        free = total - used - (0 if inside else reserved)
        self.figures |= {
            "memory.total": total,
            "memory.used": used,
            "memory.reserved": reserved,
            "memory.free": free,
            "memory.v1_used": total - free,
        }

    def fail(self, function: str, code: int, *, times: int = -1, after: int = 0) -> None:
        """`function` answers `code`, `times` times (-1: always) after `after` good answers.

        `nvmlDeviceGetClockInfo:2` fails one clock only, `field:82` one field, `*` every call on this card.
        """
        self.faults.append(f"fail {{card}} {function} {code} {times} {after}")

    def lose(self) -> None:
        """The card fell off the bus: each call on it answers NVML_ERROR_GPU_IS_LOST."""
        self.fail("*", 15)

    def slow(self, function: str, milliseconds: int) -> None:
        self.faults.append(f"slow {{card}} {function} {milliseconds}")

    def lines(self, card: str) -> Iterator[str]:
        yield f"card {card}"
        for key, value in self.figures.items():
            yield f"set {card} {key} {_escape(value)}"
        if self.retired is not None:
            yield f"set {card} retired_pages 1"
            for page in self.retired:
                yield f"retired {card} {page.cause} {page.address} {page.time}"
        for one in self.processes:
            numbers = map(_number, (one.pid, one.bytes, one.gpu_instance, one.compute_instance))
            yield f"process {card} {one.kind} {' '.join(numbers)}"
        for sample in self.samples:
            time = -round(sample.age * 1e6) if sample.time_us is None else sample.time_us
            parts = (sample.sm, sample.memory, sample.encoder, sample.decoder, sample.jpg, sample.ofa)
            yield f"sample {card} {sample.pid} {time} {' '.join(map(str, parts))}"
        for fault in self.faults:
            yield fault.format(card=card)


class Partition(Device):
    """A MIG device: it has a name, an id, memory, BAR1 and processes, and answers NOT_SUPPORTED for the rest."""

    def __init__(
        self,
        *,
        uuid: str,
        gpu_instance: int,
        compute_instance: int = 0,
        name: str = "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        total: int = 10_468_982_784,
        used: int = 0,
        reserved: int = 0,
        gpu_slices: int = 1,
        compute_slices: int = 1,
        processes: Iterable[Proc] = (),
    ) -> None:
        attributes = {
            "attributes.multiprocessors": 16 * compute_slices,
            "attributes.copy_engines": 1,
            "attributes.decoders": 1,
            "attributes.encoders": 0,
            "attributes.jpeg": 1,
            "attributes.ofa": 0,
            "attributes.gpu_slices": gpu_slices,
            "attributes.compute_slices": compute_slices,
            "attributes.memory_mib": total >> 20,
        }
        ids = {"instance.gpu": gpu_instance, "instance.compute": compute_instance}
        bar1 = {"bar1.total": 16 * GIB, "bar1.used": 1 << 20, "bar1.free": 16 * GIB - (1 << 20)}
        super().__init__({"name": name, "uuid": uuid, **ids, **attributes, **bar1}, processes)
        for one in self.processes:
            one.gpu_instance, one.compute_instance = gpu_instance, compute_instance
        self.memory(total, used, reserved)


class Card(Device):
    """A whole card. `partitions` by index switch MIG on."""

    def __init__(
        self,
        *,
        name: str | bytes = "NVIDIA H100 80GB HBM3",
        uuid: str | None = None,
        pci: str | None = None,
        total: int = 85_520_809_984,
        used: int | None = None,
        reserved: int = 540_016_640,
        inside: bool = False,
        processes: Iterable[Proc] = (),
        partitions: dict[int, Partition] | None = None,
        figures: dict[str, str | int | bytes] | None = None,
    ) -> None:
        super().__init__({"name": name, **H100}, processes)
        if used is None:
            used = sum(one.bytes or 0 for one in self.processes)
            used += sum(int(one.figures["memory.used"]) for one in (partitions or {}).values())
        self.memory(total, used, reserved, inside=inside)
        self.partitions = partitions or {}
        if self.partitions:
            self.figures |= {"mig.current": 1, "mig.pending": 1, "mig.max": 7}
            # nvml.h: loads are "not currently supported" and remapped rows are refused while MIG is on.
            self.drop(*(key for key in H100 if key.startswith(("utilization.", "remapped."))))
        self.uuid = uuid
        self.pci = pci
        self.figures |= figures or {}

    def numbered(self, index: int) -> None:
        """What differs between otherwise equal cards."""
        self.figures.setdefault("minor", index)
        self.figures.setdefault("uuid", self.uuid or f"GPU-{index:08x}-1111-2222-3333-444444444444")
        self.figures.setdefault("pci.address", self.pci or f"00000000:{0x10 + index:02X}:00.0")


@dataclass
class Scenario:
    """A machine: its driver and its cards."""

    cards: list[Card] = field(default_factory=list)
    driver: str | bytes = "575.57.08"
    nvml: str = "12.575.57.08"
    cuda: int = 12_090
    process_layout: str | None = None
    """"535": the `_v3` lists are scrambled as driver 535.54.03 did."""
    faults: list[str] = field(default_factory=list)

    def fail(self, function: str, code: int, *, times: int = -1, after: int = 0) -> None:
        """A call that concerns no card fails; `nvmlInit` stands for every spelling of it."""
        self.faults.append(f"fail - {function} {code} {times} {after}")

    def slow(self, function: str, milliseconds: int) -> None:
        self.faults.append(f"slow - {function} {milliseconds}")

    def lines(self) -> Iterator[str]:
        for key, value in (("driver", self.driver), ("nvml", self.nvml), ("cuda", self.cuda)):
            yield f"set - {key} {_escape(value)}"
        if self.process_layout is not None:
            yield f"set - process_layout {self.process_layout}"
        yield from self.faults
        for index, card in enumerate(self.cards):
            card.numbered(index)
            yield from card.lines(str(index))
            for number, partition in card.partitions.items():
                yield from partition.lines(f"{index}/{number}")

    def write(self, path: Path) -> Path:
        """Replaces the file in one step: a running recorder sees the old machine or the new one."""
        fresh = path.with_name(path.name + ".new")
        fresh.write_text("".join(f"{line}\n" for line in self.lines()), encoding="ascii")
        fresh.replace(path)
        return path

    def environment(
        self, folder: Path, *, missing: Iterable[str] = (), calls: Path | None = None, cuda: bool = False
    ) -> dict[str, str]:
        """What a child process needs in its environment to see this machine.

        `calls` gets a line for each call. `cuda`: programs can allocate on card 0, through a stand-in libcuda.
        """
        libraries = [str(build(missing=missing))]
        empty = folder / "sys"  # the cards that are really here are none of this machine's
        empty.mkdir(exist_ok=True)
        found = {"GPUSNAP_TEST_NVML": str(folder / "nvml.scenario"), "GPUSNAP_SYSFS": str(empty)}
        if calls is not None:
            found["GPUSNAP_TEST_NVML_CALLS"] = str(calls)
        if cuda:
            found["GPUSNAP_TEST_CUDA"] = str(folder / "cuda")
            (folder / "cuda").mkdir(exist_ok=True)
            libraries.append(str(build_cuda()))
            self.cards[0].figures["cuda"] = found["GPUSNAP_TEST_CUDA"]
        self.write(folder / "nvml.scenario")
        inherited = os.environ.get("LD_LIBRARY_PATH")
        found["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, *([inherited] if inherited else [])])
        return found


def _number(value: int | None) -> str:
    return UNAVAILABLE if value is None else str(value)


def _escape(value: str | int | bytes) -> str:
    raw = value if isinstance(value, bytes) else str(value).encode()
    return "".join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in raw)
