from __future__ import annotations

import pytest

from gpusnap.reading import Reading, measured, null, reason_of


def test_a_measured_zero_is_a_value() -> None:
    assert measured(0, "nvml.MemoryInfo").value == 0
    assert not measured(0, "nvml.MemoryInfo").is_null


def test_a_reading_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="0 is a measurement"):
        bool(measured(0, "x"))


@pytest.mark.parametrize(("value", "source"), [(None, "measured:x"), (0, "null:none"), (1, "null:failed x")])
def test_a_reading_is_a_value_or_a_reason(value: object, source: str) -> None:
    with pytest.raises(ValueError, match="a value or a reason"):
        Reading(value, source)


def test_only_reasons_of_the_closed_list() -> None:
    with pytest.raises(ValueError, match="not a reason"):
        null("because")
    assert null("timeout", "NVML_ERROR_TIMEOUT").provenance == "null:timeout NVML_ERROR_TIMEOUT"
    assert reason_of("null:timeout NVML_ERROR_TIMEOUT") == "timeout"
    assert reason_of("measured:x") is None
