"""A load's buffers, device by device, brought to the cards that they are on.

Which card `CUDA0` is, newer builds say (PCI address); else cards are told by their names, and cards of one name by
their order, which is the driver's own order unless the program was told another (`CUDA_VISIBLE_DEVICES`). What
can't be told stays null: a wrong card is worse than none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpusnap.llm.parts import Parts
from gpusnap.reading import Reading, inferred, null, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.logs.load import Load

SOURCE = "log"
META = "Meta()"  # -sm tensor: one line with each card's share
_NO_CARD = null("ambiguous", "the log's devices can't be told apart")


def from_load(load: Load, rows: Sequence[GpuRow]) -> list[Parts]:
    """For each row its parts; a load that is all in system memory has put 0 bytes on its cards."""
    cards = load.by_device()
    if not cards:
        return [_parts({}, reported) for _ in rows]
    if set(cards) == {META}:
        return [_parts(cards[META], reported) for _ in rows]
    names = sorted(cards, key=_device_order)
    matched = _match(names, load, rows)
    if matched is None:
        return [Parts(_NO_CARD, _NO_CARD, _NO_CARD) for _ in rows]
    device_of_row, make = matched
    return [_parts(cards.get(device_of_row.get(place, ""), {}), make) for place in range(len(rows))]


def _parts(sizes: dict[str, int], make: type[Reading] | object) -> Parts:
    put = reported if make is reported else inferred
    weights = sizes.get("weights", 0) + sizes.get("lora", 0)
    kv = sizes.get("kv", 0) + sizes.get("state", 0)
    compute = sizes.get("compute", 0) + sizes.get("output", 0)
    return Parts(put(weights, SOURCE), put(kv, SOURCE), put(compute, SOURCE))


def _match(names: list[str], load: Load, rows: Sequence[GpuRow]) -> tuple[dict[int, str], object] | None:
    if len(rows) == 1:
        return ({0: names[0]}, reported) if len(names) == 1 else None
    by_address = _by_address(names, load, rows)
    if by_address is not None:
        return by_address, reported
    by_name = _by_name(names, load, rows)
    if by_name is not None:
        return by_name, reported
    alike = len({row.card for row in rows}) == 1
    if alike and len(names) == len(rows) and all(row.number is not None for row in rows):
        order = sorted(range(len(rows)), key=lambda place: rows[place].number or 0)
        return dict(zip(order, names, strict=True)), inferred
    return None


def _by_address(names: list[str], load: Load, rows: Sequence[GpuRow]) -> dict[int, str] | None:
    found: dict[int, str] = {}
    for name in names:
        address = load.devices.get(name, ("", None))[1]
        places = [place for place, row in enumerate(rows) if address and row.pci == short_address(address)]
        if len(places) != 1:
            return None
        found[places[0]] = name
    return found


def short_address(address: str) -> str:
    """NVML's eight digits of a domain become four: `00000000:01:00.0`."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _by_name(names: list[str], load: Load, rows: Sequence[GpuRow]) -> dict[int, str] | None:
    """Cards of different models, told by the marketing name that the log repeats."""
    found: dict[int, str] = {}
    for name in names:
        title = load.devices.get(name, ("", None))[0]
        places = [place for place, row in enumerate(rows) if title and row.card == title]
        if len(places) != 1 or places[0] in found:
            return None
        found[places[0]] = name
    return found


def _device_order(name: str) -> tuple[str, int]:
    found = re.match(r"(\D*)(\d{0,4})", name)
    return (found[1], int(found[2] or 0)) if found is not None else (name, 0)
