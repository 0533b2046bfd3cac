"""Takes gpusnap's snapshot of many machines in one process of its own: `python -m tests.standin.snaps`.

The real host, the real binding and the stand-in library, at a hundredth of a process for each machine. Scenario
files come as a JSON list on stdin, documents go out as a JSON list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.standin.ask import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.standin.scenario import Scenario

Document = dict[str, Any]


def snaps(folder: Path, machines: Sequence[Scenario], *, missing: Iterable[str] = ()) -> list[Document]:
    """One document a machine, by one library."""
    environment = machines[0].environment(folder, missing=missing)
    paths = [str(machine.write(folder / f"{number}.scenario")) for number, machine in enumerate(machines)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.standin.snaps"],
        input=json.dumps(paths),
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    documents: list[Document] = json.loads(done.stdout)
    return documents


def main() -> None:
    from gpusnap.codec import dumps
    from gpusnap.collect import collect
    from gpusnap.collect.options import CollectOptions
    from gpusnap.live import LiveHost

    documents = []
    for path in json.load(sys.stdin):
        os.environ["GPUSNAP_TEST_NVML"] = path
        host = LiveHost(sysfs=os.environ["GPUSNAP_SYSFS"])
        documents.append(dumps(collect(host, CollectOptions())).decode())
        host.close_nvml()
    sys.stdout.write(f"[{','.join(documents)}]")


if __name__ == "__main__":
    main()
