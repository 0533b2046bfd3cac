"""Pure parsers of what Huawei's `npu-smi` prints, in all its layouts.

Told by header words and `|` cells, never by columns: widths, a `Phy-ID`, an `HBM-Usage` pair and a fifth process
column come and go between 23.0 and 26.x, 310P, 910B and A3. "MB" are MiB, floored (bytes / 1048576, npu-smi's
source).
"""

from __future__ import annotations

from typing import NamedTuple

from gpusnap.text import whole_number

MIB = 1 << 20
# `MAX_CHIP_PROCESS_NUM`: the table prints no more rows a chip than this.
MAX_TABLE_ROWS = 8


class Pair(NamedTuple):
    """used and total in bytes."""

    used: int
    total: int


class Chip(NamedTuple):
    """One chip of the device table; None where npu-smi prints `NA` or `-`."""

    card: int
    chip: int
    name: str
    health: str
    bus_id: str
    watts: float | None
    celsius: int | None
    aicore_percent: int | None
    memory: Pair | None
    memory_name: str


class NpuProcess(NamedTuple):
    card: int
    chip: int
    pid: int
    name: str
    memory_bytes: int


class Report(NamedTuple):
    """`listed` are the cards of which the process table says anything, if only that nothing runs there.

    Without a table it is empty: not the same as none running.
    """

    version: str | None
    chips: list[Chip]
    processes: list[NpuProcess]
    listed: frozenset[int]


class UnknownLayout(ValueError):
    """There is no device table in the text; the message is npu-smi's own last line."""


def parse_info(text: str) -> Report:
    """The output of `npu-smi info`."""
    try:
        return _parse_info(text)
    except (ValueError, IndexError) as wrong:
        raise UnknownLayout(_last_line(text)) from wrong


def _parse_info(text: str) -> Report:
    rows = [_cells(line) for line in text.splitlines() if _is_row(line)]
    version = next((_version(row[0]) for row in rows if row[0].startswith("npu-smi")), None)
    header = next((row for row in rows if row[0].split()[:1] == ["Chip"]), None)
    if header is None or len(header) < 3 or "AICore(%)" not in header[2]:
        raise UnknownLayout(_last_line(text))
    table_start = next((i for i, row in enumerate(rows) if _is_process_header(row)), None)
    device_rows = rows[:table_start]
    chips = _chips(device_rows[device_rows.index(header) + 1 :], header)
    table = [] if table_start is None else rows[table_start + 1 :]
    processes = _processes(table)
    return Report(version, chips, processes, frozenset(_quiet(table) | {row.card for row in processes}))


def _is_row(line: str) -> bool:
    """Whole rows only: one that was cut short may end inside a number."""
    return line.lstrip().startswith("|") and line.rstrip().endswith("|") and len(line.strip()) > 1


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _version(cell: str) -> str | None:
    words = cell.split()
    return words[1] if len(words) > 1 else None


def _is_process_header(row: list[str]) -> bool:
    return len(row) >= 4 and row[1] == "Process id"


def _chips(rows: list[list[str]], header: list[str]) -> list[Chip]:
    """Card row and chip row by turns."""
    found = []
    for card, chip in zip(rows[::2], rows[1::2], strict=False):
        if len(card) < 3 or len(chip) < 3:
            continue
        found.append(_chip(card, chip, "HBM-Usage(MB)" in header[2]))
    return found


def _chip(card: list[str], chip: list[str], has_hbm: bool) -> Chip:
    number, _, name = card[0].partition(" ")
    power, celsius, *_ = [*card[2].replace("/", " ").split(), "-", "-"]
    figures = chip[2].replace("/", " ").split()
    pairs = [_pair(figures[at : at + 2]) for at in range(1, len(figures), 2)]
    memory, memory_name = _memory(pairs, has_hbm)
    return Chip(
        card=int(number),
        chip=int(chip[0].split()[0]),
        name=name.strip(),
        health=card[1],
        bus_id=chip[1].lower(),
        watts=_number(power),
        celsius=whole_number(celsius),
        aicore_percent=whole_number(figures[0]) if figures else None,
        memory=memory,
        memory_name=memory_name,
    )


def _memory(pairs: list[Pair | None], has_hbm: bool) -> tuple[Pair | None, str]:
    """HBM where the chip has some; the 310 family has DDR only, and its HBM would read 0 (Paddle#44407)."""
    if has_hbm and len(pairs) > 1 and pairs[1] is not None and pairs[1].total > 0:
        return pairs[1], "HBM-Usage"
    if pairs and pairs[0] is not None and pairs[0].total > 0:
        return pairs[0], "Memory-Usage"
    return None, "Memory-Usage"


def _pair(words: list[str]) -> Pair | None:
    if len(words) != 2 or not (words[0].isdigit() and words[1].isdigit()):
        return None
    return Pair(int(words[0]) * MIB, int(words[1]) * MIB)


def _processes(rows: list[list[str]]) -> list[NpuProcess]:
    found = []
    for row in rows:
        if len(row) < 4 or not row[1].isdigit() or not row[3].isdigit():
            continue
        place = [whole_number(word) for word in row[0].split()]
        if not place or place[0] is None or (len(place) > 1 and place[1] is None):
            continue  # a torn row names no chip
        chip = place[1] if len(place) > 1 and place[1] is not None else 0
        found.append(NpuProcess(place[0], chip, int(row[1]), row[2], int(row[3]) * MIB))
    return found


def _quiet(rows: list[list[str]]) -> set[int]:
    """Cards of which the table says "No running processes found in NPU 3"."""
    words = [row[0].split() for row in rows if row[0].startswith("No running processes found in NPU")]
    return {int(line[-1]) for line in words if line[-1].isdigit()}


def parse_proc_mem(text: str, card: int, chip: int | None = None) -> list[NpuProcess] | None:
    """`npu-smi info -t proc-mem`; None for a text that is neither a list nor "No process in device.".

    Without `-c` each chip's block ends with its `Chip ID` line.
    """
    try:
        return _parse_proc_mem(text, card, chip)
    except ValueError:
        return None


def _parse_proc_mem(text: str, card: int, chip: int | None) -> list[NpuProcess] | None:
    pending: list[tuple[int, str, int]] = []
    found: list[NpuProcess] = []
    seen = False
    for line in _whole_lines(text):
        words = line.strip()
        if words.startswith("Process id:"):
            seen = True
            pending.append(_process_line(words))
        elif words.startswith("No process in device"):
            seen = True
        elif words.startswith("Chip ID"):
            number = int(words.rpartition(":")[2])
            found += [NpuProcess(card, number, *entry) for entry in pending]
            pending = []
    if pending:
        found += [NpuProcess(card, chip if chip is not None else 0, *entry) for entry in pending]
    return found if seen else None


def _whole_lines(text: str) -> list[str]:
    """Without a last one that was cut short."""
    return text.split("\n")[:-1]


def _process_line(line: str) -> tuple[int, str, int]:
    pid, _, rest = line.removeprefix("Process id:").partition("Process name:")
    name, _, memory = rest.partition("Process memory(MB):")
    return int(pid), name.strip(), int(memory) * MIB


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
