"""amdgpu's error counters. Source: amdgpu_ras.c and its sysfs page.

`ras/BLOCK_err_count` holds `ue: N` and `ce: N` since the driver loaded; blocks are summed. What the card keeps
over its life stands in no file but the list of bad pages.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gpusnap.collect.sysfs import MAX_INTEGER, unknown_format, why
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from gpusnap.host import Tree

_PAGES_LIMIT = 1 << 20
_MEMORY = "umc_err_count"
_UMC = 1  # bit of the memory controller in the feature mask
_COUNTS = {"uncorrected_volatile": "ue", "corrected_volatile": "ce"}


def ras(tree: Tree, path: str) -> dict[str, Reading]:
    folder = f"{path}/ras"
    try:
        files = sorted(tree.listdir(folder))
    except OSError as error:
        reason = why(error, "sysfs.ras")
        leaves = ("enabled", "uncorrected_volatile", "corrected_volatile", "retired_pages")
        return {f"ecc.{leaf}": reason for leaf in leaves}
    blocks = [name for name in files if name.endswith("_err_count")]
    # Without the memory controller's block the sum would leave out what ECC is about.
    counts = [_count(tree, f"{folder}/{name}", name) for name in blocks] if _MEMORY in blocks else []
    figures = {f"ecc.{leaf}": _sum([count[key] for count in counts]) for leaf, key in _COUNTS.items()}
    figures["ecc.enabled"] = _enabled(tree, folder)
    figures["ecc.retired_pages"] = _retired(tree, folder)
    return figures


def _count(tree: Tree, path: str, name: str) -> dict[str, Reading]:
    source = f"sysfs.ras/{name}"
    try:
        raw = tree.read(path, 4096)
    except OSError as error:
        # A counter that the firmware can't give now answers EINVAL; a card in reset a sentence.
        return dict.fromkeys(_COUNTS.values(), why(error, source, {errno.EINVAL: "device-busy"}))
    if raw.startswith(b"Query currently inaccessible"):
        return dict.fromkeys(_COUNTS.values(), null("device-busy", "Query currently inaccessible"))
    found: dict[str, Reading] = dict.fromkeys(_COUNTS.values(), unknown_format(source, raw))
    for line in raw.split(b"\n")[:-1]:
        key, _, value = line.partition(b":")
        if value.strip().isdigit() and key.decode("ascii", "replace") in found:
            found[key.decode()] = _in_range(int(value), source)
    return found


def _sum(counts: list[Reading]) -> Reading:
    """All blocks together; unknown when one is."""
    if not counts:
        return null("not-exposed", f"sysfs.ras/{_MEMORY}")
    total = 0
    for count in counts:
        if not isinstance(count.value, int):
            return count
        total += count.value
    return _in_range(total, "sysfs.ras/*_err_count")


def _in_range(count: int, source: str) -> Reading:
    return measured(count, source) if count < MAX_INTEGER else null("out-of-range", f"{source} says {count}")


def _enabled(tree: Tree, folder: str) -> Reading:
    """`feature mask: 0x1f7f`: the first bit is the memory's."""
    source = "sysfs.ras/features"
    try:
        raw = tree.read(f"{folder}/features", 4096)
    except OSError as error:
        return why(error, source)
    first, newline, _ = raw.partition(b"\n")
    mask = first.partition(b"feature mask:")[2].strip()
    try:
        return measured(bool(int(mask, 16) & _UMC), source) if newline else unknown_format(source, raw)
    except ValueError:
        return unknown_format(source, raw)


def _retired(tree: Tree, folder: str) -> Reading:
    """Lines `0x00000001 : 0x00001000 : R`: R is retired, P waits for it, F could not be."""
    source = "sysfs.ras/gpu_vram_bad_pages"
    try:
        raw = tree.read(f"{folder}/gpu_vram_bad_pages", _PAGES_LIMIT)
    except OSError as error:
        return why(error, source)
    lines = raw.split(b"\n")
    if lines[-1] or not all(line.count(b":") == 2 for line in lines[:-1]):
        return unknown_format(source, raw)
    return measured(sum(line.rstrip().endswith(b": R") for line in lines[:-1]), source)
