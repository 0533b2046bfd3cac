"""The two shipped snapshots are what gpusnap writes, and their difference is what the facts say."""

from __future__ import annotations

import json

import pytest

from gpusnap.codec_read import Reader
from gpusnap.diff import diff
from gpusnap.render.diff_text import diff_lines
from gpusnap.render.screen import Screen
from tests.contract import check_contract
from tests.example_snapshots import FILES, documents

MIB = 1 << 20


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_gpusnap_writes_today(name: str) -> None:
    data = FILES[name].read_bytes()
    check_contract(json.loads(data))
    assert data == documents()[name], "run `make golden` and review the difference"


def test_their_difference_is_the_load_of_a_model() -> None:
    before, after = (Reader(name).read(FILES[name].read_bytes()) for name in ("before", "after"))
    result = diff(before, after)
    # NVML: 16666066944 used after; the server holds 14817427456, firefox grew from 744488960 to 851443712.
    assert result["adapters"][0]["changes"]["memory.used_bytes"]["delta"] == 14817427456 + 851443712 - 744488960
    assert [(row["pid"], row["status"]) for row in result["processes"] if row["status"] != "same"] == [
        (4711, "appeared"),
        (3120, "changed"),
    ]
    assert result["unattributed"][0]["delta_bytes"] == 0
    assert diff_lines(result, before, after, Screen())[0] == (
        "RTX 4080 SUPER: +13.9 GiB in 4 min 10 s (1.6 → 15.5 GiB): llama-server took 13.8, firefox 0.1."
    )
