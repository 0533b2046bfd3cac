"""What NVML's answers mean inside WSL2: the card is the Windows host's, and so is what is used of it.

NVIDIA's "CUDA on WSL" guide; public reports: nvtop#432, nvtop#109, nvitop#49, microsoft/WSL#7162.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import warning
from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.collect.harvest import AdapterFacts, Harvest

_SCOPE = "WSL: used memory and load are those of the whole Windows host; its programs are not listed here"
_OLD_DRIVER = "old drivers tell no load inside WSL: a newer one on Windows does"


def note_scope(facts: AdapterFacts, harvest: Harvest) -> None:
    """Once a card: whose figures these are; and where the load is missing, what would mend that."""
    harvest.warnings.append(warning("whole-host-scope", _SCOPE, str(facts.identity["id"])))
    load = facts.figures["load.gpu_percent"]
    if load.value is None and load.provenance.startswith("null:not-supported"):
        words = load.provenance.partition(" ")[2]
        facts.figures["load.gpu_percent"] = null("not-supported", f"{words}; {_OLD_DRIVER}")


def bound_list(facts: AdapterFacts, any_rows: bool) -> None:
    """The driver names some guests at most: no rows is not "nothing runs", and rows are not all there are."""
    facts.unreadable_pids = None
    if facts.processes_listed == "complete":
        facts.processes_listed = "partial" if any_rows else null("wsl", "the driver lists no process")
