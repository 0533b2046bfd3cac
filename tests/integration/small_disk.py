"""Real file systems of a few MiB, mounted for a test; only root may."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE_MIB = 2


@contextmanager
def small_disk(kind: str, folder: Path) -> Iterator[Path]:
    """`tmpfs` refuses a page at once; `ext4` allocates blocks when data is flushed."""
    place = folder / kind
    place.mkdir()
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "gpusnap-test", str(place))
    else:
        image = folder / "image"
        with image.open("wb") as made:
            made.truncate(SIZE_MIB << 20)
        _run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(place))
    try:
        yield place
    finally:
        _run("umount", str(place))


def remount(place: Path, how: str) -> None:
    """`ro` or `rw`."""
    _run("mount", "-o", f"remount,{how}", str(place))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)
