"""Who has a GPU's device files open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.collect.processes import ProcessTable
    from gpusnap.host import Host
    from gpusnap.model import Holder


def gpu_file_test(host: Host) -> Callable[[int], bool | None]:
    """Whether a process has a GPU's device file open; None where its descriptors can't be read."""

    def holds(pid: int) -> bool | None:
        try:
            links = host.proc.links(f"{pid}/fd")
        except OSError:
            return None
        return any(target.startswith(("/dev/nvidia", "/dev/dri/", "/dev/kfd")) for _, target in links)

    return holds


def holders_of(
    host: Host,  # noqa: ARG001
    table: ProcessTable,  # noqa: ARG001
    adapters: Sequence[AdapterFacts],
) -> dict[str, list[Holder] | Reading]:
    return dict.fromkeys([facts.key for facts in adapters], null("not-probed"))
