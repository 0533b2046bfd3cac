"""Which of a process's cards is the engine's first, and which of them hold layers.

The engine counts the cards that the runtime shows it, in the runtime's order: CUDA puts the fastest first unless
CUDA_DEVICE_ORDER says PCI_BUS_ID, and CUDA_VISIBLE_DEVICES picks and sorts. So an order is known only where the
cards are alike, or where the environment settles it; elsewhere nobody but a log can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv.facts import Unsettled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.workload import Workload

RAM = -1
_LISTS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_OTHERS = ("GGML_VK_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK")
_UNKNOWN_ORDER = "which card is the engine's first only a log tells"


class Cards:
    """`devices[n]` is the row of the backend's device n; `used` are the rows that get layers, in order."""

    __slots__ = ("devices", "shares", "used")

    def __init__(self, devices: dict[int, int], used: list[int], shares: list[float]) -> None:
        self.devices = devices
        self.used = used
        self.shares = shares

    def of_buffer(self, buffer: str) -> int:
        """The place of `CUDA1`, RAM for `CPU`; Unsettled for what is none of the rows."""
        if buffer == "CPU":
            return RAM
        number = _number(buffer)
        if number is None:
            raise Unsettled("ambiguous", "where a buffer is only a log tells (-ot)")
        if number not in self.devices:
            raise Unsettled("ambiguous", "a buffer is on none of the cards that are measured (-ot)")
        return self.devices[number]


def cards_of(workload: Workload, rows: Sequence[GpuRow], names: str | None = None) -> Cards:
    """Raises Unsettled where the flags do not say which card gets which layers; `names` instead of -dev's."""
    if workload.remote_devices:
        raise Unsettled("ambiguous", "some layers are on other machines (--rpc): how many only a log tells")
    named = _named(names if names is not None else workload.devices)
    devices = _devices(rows, workload.visible, named)
    used = list(devices.values()) if named is None else [_of_name(devices, name) for name in named]
    if workload.split_mode == "none" and used:
        used = _main(used, workload.main_gpu)
    return Cards(devices, used, _shares(workload, used))


def _named(devices: str | None) -> list[str] | None:
    if devices is None:
        return None
    names = [name for name in devices.split(",") if name]
    return [] if names == ["none"] else names


def _of_name(devices: dict[int, int], name: str) -> int:
    number = _number(name)
    if number is None or number not in devices:
        raise Unsettled("ambiguous", "a device is none of the cards that are measured (-dev)")
    return devices[number]


def _number(name: str) -> int | None:
    """`CUDA1` -> 1, `Metal` -> 0."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    if not stem.isascii() or not stem.isalpha() or len(digits) > 3:
        return None
    return int(digits) if digits else (0 if stem == "Metal" else None)


def _main(used: list[int], main: int | None) -> list[int]:
    if main is not None and main < 0:
        return []
    place = main if main is not None else 0
    if place >= len(used):
        raise Unsettled("ambiguous", "-mg is none of the cards that are measured")
    return [used[place]]


def _devices(rows: Sequence[GpuRow], visible: Mapping[str, str], named: list[str] | None) -> dict[int, int]:
    if len(rows) == 1:
        # The one card on which it holds memory is the one that it names, whatever its number.
        number = _number(named[0]) if named is not None and len(named) == 1 else None
        return {number if number is not None else 0: 0}
    if any(name in visible for name in _OTHERS) or any(row.number is None for row in rows):
        raise Unsettled("ambiguous", f"over {len(rows)} cards: {_UNKNOWN_ORDER}")
    by_number = visible.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({row.card for row in rows}) == 1
    listed = next((visible[name] for name in _LISTS if visible.get(name)), None)
    places = range(len(rows))
    if listed is not None:
        entries = [entry.strip() for entry in listed.split(",")]
        found = [_listed(rows[place], entries, by_number=by_number) for place in places]
        if None not in found and len(set(found)) == len(found):
            return dict(enumerate(sorted(places, key=lambda place: found[place] or 0)))
    elif by_number:
        return dict(enumerate(sorted(places, key=lambda place: rows[place].number or 0)))
    raise Unsettled("ambiguous", f"over {len(rows)} cards: {_UNKNOWN_ORDER}")


def _listed(row: GpuRow, entries: list[str], *, by_number: bool) -> int | None:
    """Where the row's card stands in a list of numbers or UUIDs."""
    for place, entry in enumerate(entries):
        if entry.isascii() and entry.isdigit():
            if by_number and len(entry) < 4 and int(entry) == row.number:
                return place
        elif len(entry) > 4 and row.adapter.startswith(entry):
            return place
    return None


def _shares(workload: Workload, used: list[int]) -> list[float]:
    """-ts as the engine takes it: cards that it does not name get nothing."""
    given = _ratios(workload.tensor_split)
    if len(used) < 2:
        if sum(share > 0 for share in given) > 1 and workload.split_mode in (None, "layer"):
            raise Unsettled("ambiguous", "-ts names more cards than are measured")
        return [1.0] * len(used)
    if workload.split_mode not in (None, "layer"):
        words = "each tensor is cut over" if workload.split_mode in ("row", "tensor") else "over"
        raise Unsettled("ambiguous", f"{words} {len(used)} cards: the shares only a log tells")
    if not any(given):
        raise Unsettled("ambiguous", f"over {len(used)} cards: which layer is where only a log tells")
    if len(given) > len(used):
        raise Unsettled("ambiguous", "-ts names more cards than are measured")
    return given + [0.0] * (len(used) - len(given))


def _ratios(text: str | None) -> list[float]:
    if text is None:
        return []
    try:
        shares = [float(part) for part in text.replace("/", ",").split(",") if part]
    except ValueError:
        return []
    return shares if all(0 <= share < float("inf") for share in shares) else []
