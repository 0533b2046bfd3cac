"""A reading: a value or the reason why there is none, and where either comes from.

A reading's `provenance` is the text that the document carries:
`"measured:nvml.MemoryInfo_v2"` or `"null:no-permission NVML_ERROR_NO_PERMISSION"`. A reading has no truth
value, since `if used` on a measured 0 is the classic bug of this field.
"""

from __future__ import annotations

# Why there is no figure: the closed list of the contract. Nothing else may follow "null:".
REASONS = frozenset(
    {
        "none",
        "not-supported",
        "not-exposed",
        "no-permission",
        "other-pid-namespace",
        "exited",
        "device-lost",
        "device-suspended",
        "device-busy",
        "needs-two-samples",
        "not-requested",
        "not-probed",
        "unified-memory",
        "wddm",
        "wsl",
        "partitioned",
        "shared",
        "ambiguous",
        "out-of-range",
        "over-attributed",
        "contradiction",
        "unknown-format",
        "timeout",
        "failed",
    }
)

# Where a figure comes from, strongest first.
KINDS = ("measured", "reported", "computed", "inferred", "estimated")


class Reading:
    """One value with its source, or none with its reason. Build it by the functions below."""

    __slots__ = ("provenance", "value")

    def __init__(self, value: object, provenance: str) -> None:
        if (value is None) is not provenance.startswith("null:"):
            raise ValueError(f"a reading is a value or a reason: {value!r}, {provenance!r}")
        self.value = value
        self.provenance = provenance

    def __bool__(self) -> bool:
        raise TypeError("a reading has no truth value: 0 is a measurement, null is not zero")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reading):
            return NotImplemented
        return self.value == other.value and self.provenance == other.provenance

    def __hash__(self) -> int:
        return hash((str(self.value), self.provenance))

    def __repr__(self) -> str:
        return f"Reading({self.value!r}, {self.provenance!r})"

    @property
    def is_null(self) -> bool:
        return self.value is None


def measured(value: object, source: str) -> Reading:
    """A counter of the driver or kernel; `source` names the call, file or key."""
    return Reading(value, "measured:" + source)


def reported(value: object, source: str) -> Reading:
    """The workload's own words: its log or its local API."""
    return Reading(value, "reported:" + source)


def computed(value: object, source: str) -> Reading:
    """Exact arithmetic on measured or declared facts."""
    return Reading(value, "computed:" + source)


def inferred(value: object, source: str) -> Reading:
    """A conclusion from evidence, such as a loaded library."""
    return Reading(value, "inferred:" + source)


def estimated(value: object, source: str) -> Reading:
    return Reading(value, "estimated:" + source)


def null(reason: str, words: str = "") -> Reading:
    """No figure; `reason` is one of REASONS, `words` the source's own text."""
    if reason not in REASONS:
        raise ValueError(f"not a reason of the contract: {reason!r}")
    return Reading(None, f"null:{reason} {words}" if words else "null:" + reason)


def reason_of(provenance: str) -> str | None:
    """`"null:timeout NVML_ERROR_TIMEOUT"` -> `"timeout"`; None where the provenance is that of a value."""
    if not provenance.startswith("null:"):
        return None
    return provenance[5:].split(" ", 1)[0]
