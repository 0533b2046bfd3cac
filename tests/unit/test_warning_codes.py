"""Every warning code that the program can write is in the README, so that a script can rely on its meaning."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITTEN = re.compile(r'(?:\bwarning|\b_warning|\bnote|\badd|\bNote)\(\s*"([a-z]+(?:-[a-z]+)+)"')


def test_every_warning_code_is_in_the_readme() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "gpusnap").rglob("*.py"))
    codes = set(WRITTEN.findall(sources))
    readme = (ROOT / "README.md").read_text()
    assert {"out-of-range", "other-pid-namespace", "internal-error"} <= codes
    assert {code for code in codes if f"`{code}`" not in readme} == set()
