"""Warning codes and reasons: the README has each that the program writes and no other; scripts rely on them."""

from __future__ import annotations

import re
from pathlib import Path

from gpusnap.reading import REASONS

ROOT = Path(__file__).parents[2]
WRITTEN = re.compile(r'(?:\bwarning|\b_warning|\bnote|\badd|\bNote)\(\s*"([a-z]+(?:-[a-z]+)+)"')


def test_every_warning_code_is_in_the_readme() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "gpusnap").rglob("*.py"))
    codes = set(WRITTEN.findall(sources))
    readme = (ROOT / "README.md").read_text()
    assert {"out-of-range", "other-pid-namespace", "internal-error"} <= codes
    assert {code for code in codes if f"`{code}`" not in readme} == set()


def tables(head: str) -> set[str]:
    """What stands as code in the first column of the README's tables with that head."""
    readme = (ROOT / "README.md").read_text()
    bodies = re.findall(rf"^\| {head}[^|]*\|.*\n\|[-|]+\n((?:\|.*\n)+)", readme, re.MULTILINE)
    return {
        code for body in bodies for row in body.splitlines() for code in re.findall(r"`(.+?)`", row.split("|")[1])
    }


def test_the_readme_has_no_warning_that_is_never_written() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "gpusnap").rglob("*.py"))
    named = tables("warning")
    assert {"out-of-range", "clock-step", "peak-incomplete"} <= named
    assert {code for code in named if f'"{code}"' not in sources} == set()


def test_the_readme_has_each_reason_and_no_other() -> None:
    assert tables("reason") == REASONS
