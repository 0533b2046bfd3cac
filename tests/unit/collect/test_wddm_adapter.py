"""What kind of adapter Windows names, where DXCore does not say."""

from __future__ import annotations

import pytest

from gpusnap.collect.wddm_figures import is_integrated


@pytest.mark.parametrize(
    ("adapter", "integrated"),
    [
        ({"integrated": True, "dedicated_bytes": 8 << 30}, True),
        ({"integrated": False, "dedicated_bytes": 0}, False),
        ({"dedicated_bytes": 128 << 20}, True),  # a carve-out
        ({"dedicated_bytes": 0}, True),
        ({"dedicated_bytes": 8 << 30}, False),
        ({"dedicated_bytes": None}, False),  # unknown is not zero
        ({}, False),
    ],
)
def test_an_adapter_of_unknown_memory_is_not_called_integrated(
    adapter: dict[str, object], integrated: bool
) -> None:
    assert is_integrated(adapter) is integrated
