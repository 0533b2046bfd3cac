"""Null reasons in words for people."""

from __future__ import annotations

WORDS = {
    "none": "there is none",
    "not-supported": "not supported by the device or driver",
    "not-exposed": "no source tells it",
    "no-permission": "no permission",
    "other-pid-namespace": "a pid of another namespace",
    "exited": "exited: no such process any more",
    "device-lost": "the device is lost",
    "device-suspended": "the device sleeps and was not woken",
    "device-busy": "the device was busy",
    "needs-two-samples": "needs two samples (--window)",
    "not-requested": "not asked for",
    "not-probed": "not probed (--probe)",
    "unified-memory": "unified memory",
    "wddm": "Windows manages the memory (WDDM), the driver can't say",
    "wsl": "not told across the border of WSL",
    "partitioned": "stands on the partitions",
    "shared": "shared, can't be split",
    "ambiguous": "the evidence is ambiguous",
    "out-of-range": "the source gave an impossible figure",
    "over-attributed": "more is attributed than used",
    "contradiction": "the sources contradict each other",
    "unknown-format": "unknown format",
    "timeout": "no answer in time",
    "failed": "the source failed",
}


def in_words(provenance: str | None) -> str:
    """`"null:no-permission NVML_.."` -> `no permission (NVML_..)`; None -> `no reason recorded`."""
    if provenance is None or not provenance.startswith("null:"):
        return "no reason recorded"
    reason, _, words = provenance[5:].partition(" ")
    text = WORDS.get(reason, reason)
    return f"{text} ({words})" if words else text


def short(provenance: str | None) -> str:
    """The reason alone, without the source's own words."""
    if provenance is None or not provenance.startswith("null:"):
        return "no reason recorded"
    reason = provenance[5:].partition(" ")[0]
    return WORDS.get(reason, reason)
