"""A card's account: figures that add up to the sentence above them, with a unit wherever that has none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpusnap.render.card import account_line, card_lines, title
from gpusnap.render.screen import Screen
from tests.builders import GIB, MIB, adapter, process, snapshot


def card_of(card: dict[str, Any], *rows: dict[str, Any]) -> tuple[Any, Any]:
    document = snapshot([card], list(rows))
    return document, document["adapters"][0]


def test_the_parts_add_up_to_the_used_and_total_figures_that_people_read() -> None:
    # 1.38 and 41.84 of 43.22: rounded on their own, or to the total alone, they contradict "1.4 of 43.2 used".
    _, card = card_of(adapter(used=round(1.36 * GIB), total=round(43.21 * GIB)))
    assert account_line(card) == "unattributed 1.4 · free 41.8"


def test_a_bound_is_rounded_like_the_other_parts() -> None:
    total, used = 8 * GIB, round(3.54 * GIB)
    card = adapter(used=used, total=total, leaves={"unreadable_pids": 1})
    _, shown = card_of(card, process(1, round(2.85 * GIB)), process(2, round(0.34 * GIB), category="desktop"))
    line = account_line(shown) or ""
    numbers = [float(word) for word in re.findall(r"\d+\.\d", line)]
    assert round(sum(numbers[:-1]), 1) == 3.5
    assert "unattributed up to 0." in line


def test_without_a_size_of_the_card_the_parts_name_their_unit() -> None:
    # GB10 and Thor: NVML lists processes but has no memory of the device.
    card = adapter(used="null:not-supported", total="null:not-supported")
    _, shown = card_of(card, process(1, 8000 * MIB, category="llm"), process(2, 300 * MIB, category="desktop"))
    assert account_line(shown) == "llm 7.8 GiB · desktop 0.3 GiB · unattributed unknown"


def test_one_process_that_could_not_be_looked_into_is_one_process() -> None:
    document, card = card_of(adapter(used=GIB, leaves={"unreadable_pids": 1}))
    assert "       1 process could not be looked into" in card_lines(document, card, Screen())


def test_a_part_that_the_sum_leaves_no_tenth_for_is_a_trace() -> None:
    # An A100's partition, in bytes: 13.965 + 0.064 = 14.030 GiB; "14.0 + 0.1" would not be the "14.0 used" above.
    card = adapter(used=15_063_842_816, total=20_937_965_568)
    _, shown = card_of(card, process(5001, 14_994_636_800))
    assert account_line(shown) == "ai 14.0 · unattributed <0.1 · free 5.5"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"model": "AMD Radeon RX 6800"}, "GPU 0  AMD Radeon RX 6800"),
        # A card of another vendor behind WSL's paravirtual driver: nothing but the driver is known.
        ({"vendor": "other", "driver": "dxgkrnl", "pci_address": None}, "GPU 0  model unknown (dxgkrnl)"),
        # A lost NVIDIA card answers no name.
        (
            {"driver": "nvidia", "pci_address": "0000:81:00.0"},
            "GPU 0  NVIDIA, model unknown (nvidia, 0000:81:00.0)",
        ),
        ({"vendor": "other", "driver": None, "pci_address": None}, "GPU 0  model unknown"),
    ],
)
def test_a_card_without_a_readable_model_is_told_by_what_is_known(facts: dict[str, Any], said: str) -> None:
    card = {**adapter(0), "model": None, **facts}
    assert title(card_of(card)[1]) == said
