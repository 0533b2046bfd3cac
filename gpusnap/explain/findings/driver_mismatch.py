"""A driver library that does not fit the loaded kernel module, as after an unattended upgrade.

gpusnap says both versions (cppuprofile#7, shine-cluster#30); running jobs go on, new ones can't start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import Found
    from gpusnap.model import Snapshot


def find_in_document(document: Snapshot) -> Iterator[Found]:
    for backend in document["backends"]:
        detail = backend["detail"] or ""
        if backend["status"] != "failed" or "mismatch" not in detail.lower():
            continue
        yield found(
            "driver-mismatch",
            "critical",
            {"kind": "host", "adapter": None, "pid": None, "start_ticks": None, "source": None},
            f"{backend['name']}: the driver's library and its kernel module are of different versions",
            [detail],
            [
                "Programs that run already go on; new ones can't use the card until both fit again.",
                "Reboot, or end the programs and reload the module. What upgraded it: "
                "grep -h -e nvidia -e amdgpu /var/log/apt/history.log /var/log/dnf.log",
            ],
            headline="the driver's library does not fit the loaded kernel module, so nothing can be measured",
        )
