"""Checks gpusnap on a machine with a real NVIDIA card: `python tests/device/check.py` in the repository's root.

Child processes allocate known sizes through the driver's own calls (holder.py), snapshots are taken around them,
and the figures are held against what was allocated. Then each NVML call is timed (calls.py). Exit code 0: all
checks passed, 1: one failed, 2: there is no card here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MIB = 1 << 20
# The driver gives memory in pieces of 2 MiB and may round a context up by one.
SLACK = 8 * MIB
# What a driver may keep to itself after a process has come and gone.
RESIDUE = 64 * MIB
INITIAL_PID_NAMESPACE = "pid:[4026531836]"

Document = dict[str, Any]


class Report:
    """Lines for a person, and whether all was well."""

    def __init__(self) -> None:
        self.failures = 0

    def check(self, what: str, good: bool, found: object = "") -> bool:
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}{'' if found == '' else f': {found}'}", flush=True)
        return good

    def note(self, what: str) -> None:
        print(f"     {what}", flush=True)


class NoCard(Exception):
    pass


class Holder:
    """A child that holds memory of the card."""

    def __init__(self, size: int, *options: str) -> None:
        self.size = size
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "holder.py"), str(size), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self.facts = self.hear()

    def hear(self) -> Document:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            _, problem = self.process.communicate()
            if self.process.returncode == 2:
                raise NoCard(problem.strip())
            sys.exit(f"holder.py: exit code {self.process.returncode}: {problem.strip()}")
        facts: Document = json.loads(line)
        return facts

    def tell(self, command: str) -> None:
        if self.process.stdin:
            self.process.stdin.write(f"{command}\n")
            self.process.stdin.flush()

    def allocate(self, size: int) -> None:
        self.tell(f"alloc {size}")
        self.hear()
        self.size += size

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Machine:
    """gpusnap, run as its users run it, on one card."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uuid = ""
        self.taken = 0

    def gpusnap(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gpusnap", *argv],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    def snap(self) -> Path:
        self.taken += 1
        path = self.folder / f"{self.taken}.json"
        done = self.gpusnap("snap", "-o", str(path))
        if done.returncode != 0 or done.stderr:
            sys.exit(f"gpusnap snap: exit code {done.returncode}: {done.stderr}")
        return path

    def diff(self, before: Path, after: Path) -> Document:
        done = self.gpusnap("diff", str(before), str(after), "--json")
        if done.returncode != 0:
            sys.exit(f"gpusnap diff: exit code {done.returncode}: {done.stderr}")
        document: Document = json.loads(done.stdout)
        return document

    def card(self, path: Path) -> Document:
        """The one that the holders use: CUDA knows no GPU- or MIG- before a UUID."""
        adapters: list[Document] = json.loads(path.read_text())["adapters"]
        return next(row for row in adapters if row["id"].endswith(self.uuid))

    def rows(self, path: Path) -> dict[int, Document]:
        rows: list[Document] = json.loads(path.read_text())["processes"] or []
        return {row["pid"]: row for row in rows if row["adapter"].endswith(self.uuid)}


def settled(machine: Machine, pid: int) -> tuple[Path, float]:
    """The first snapshot without this pid, and how long the driver took to let it go (10 s at most)."""
    began = time.monotonic()
    while True:
        path = machine.snap()
        waited = time.monotonic() - began
        if pid not in machine.rows(path) or waited > 10:
            return path, waited


def check_totals(report: Report, card: Document) -> None:
    memory, accounting = card["memory"], card["accounting"]
    total, used, free, reserved = (memory[f"{key}_bytes"] for key in ("total", "used", "free", "reserved"))
    report.note(f"total {total}, used {used}, free {free}, reserved {reserved}")
    if None in (total, used, free):
        report.note("the driver gives no totals for this card: not checked")
        return
    apart = None if reserved is None else total - used - free - reserved
    report.note(f"total - used - free = {total - used - free}; less reserved = {apart}")
    report.check("one of the two identities holds", apart == 0 or total == used + free)
    inside = reserved if reserved is not None and total == used + free else 0
    report.check("reserved inside used, as the totals tell", accounting["reserved_bytes"] == inside, inside)
    attributed, unattributed = accounting["attributed_bytes"], accounting["unattributed_bytes"]
    if attributed is not None and unattributed is not None:
        report.check("used = attributed + unattributed + reserved", used == attributed + unattributed + inside)
    report.note(f"unattributed {unattributed}")


def check_sizes(report: Report, machine: Machine, before: Path, after: Path, holders: list[Holder]) -> None:
    """The first holder has a context and nothing else: the others' figures are that plus what they allocated."""
    rows = machine.rows(after)
    context = rows[holders[0].pid]["vram_bytes"]
    report.note(f"a context alone: {context} bytes ({context / MIB:.0f} MiB)")
    for one in holders:
        found = rows[one.pid]["vram_bytes"]
        report.check(
            f"pid {one.pid} holds its {one.size // MIB} MiB", abs(found - context - one.size) <= SLACK, found
        )
    charged = sum(rows[one.pid]["vram_bytes"] for one in holders)
    grown = (machine.card(after)["memory"]["used_bytes"] or 0) - (
        machine.card(before)["memory"]["used_bytes"] or 0
    )
    report.check("used grew by what the rows say", abs(grown - charged) <= RESIDUE, f"{grown} beside {charged}")


def check_appeared(report: Report, difference: Document, holders: list[Holder]) -> None:
    appeared = {row["pid"] for row in difference["processes"] if row["status"] == "appeared"}
    report.check("diff shows each child as appeared", {one.pid for one in holders} <= appeared, sorted(appeared))
    changes = difference["adapters"][0]["changes"]
    delta = changes["memory.used_bytes"]["delta"] if "memory.used_bytes" in changes else None
    report.check("diff shows the card's growth", delta is not None and delta > 0, delta)


def check_growth(report: Report, machine: Machine, before: Path, grown: Holder) -> Path:
    size = 512 * MIB
    grown.allocate(size)
    after = machine.snap()
    row = next(row for row in machine.diff(before, after)["processes"] if row["pid"] == grown.pid)
    delta = row["changes"]["vram_bytes"]["delta"] if row["status"] == "changed" else None
    report.check("diff shows 512 MiB more", delta is not None and abs(delta - size) <= SLACK, delta)
    return after


def check_end(report: Report, machine: Machine, before: Path, holder: Holder) -> None:
    """A child that has exited and was not waited for: a zombie whose memory the driver has taken back."""
    holder.tell("quit")
    while Path(f"/proc/{holder.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    zombie, waited = settled(machine, holder.pid)
    left = machine.rows(zombie).get(holder.pid)
    if left is None:
        report.note(f"an exited, unreaped child leaves the driver's list within {waited:.2f} s")
    else:
        report.check("an exited child that is still listed is a zombie", left["state"] == "zombie", left["state"])
    holder.end()
    gone, _ = settled(machine, holder.pid)
    row = next(row for row in machine.diff(before, gone)["processes"] if row["pid"] == holder.pid)
    report.check("diff shows the exited child", row["status"] == "exited", row["status"])
    delta = row["changes"]["vram_bytes"]["delta"]
    report.check("and all that it held as freed", delta == -machine.rows(before)[holder.pid]["vram_bytes"], delta)


def check_states(report: Report, machine: Machine, stopped: Holder, leaderless: Holder) -> None:
    os.kill(stopped.pid, signal.SIGSTOP)
    rows = machine.rows(machine.snap())
    os.kill(stopped.pid, signal.SIGCONT)
    report.check("a stopped child is stopped", rows[stopped.pid]["state"] == "stopped", rows[stopped.pid]["state"])
    row = rows[leaderless.pid]
    report.check("a child whose first thread has ended is a zombie", row["state"] == "zombie", row["state"])
    report.check("that still holds its memory", row["vram_bytes"] >= leaderless.size, row["vram_bytes"])


def check_nothing_left(report: Report, machine: Machine, first: Path, killed: Holder) -> None:
    killed.process.kill()
    killed.end()
    last, waited = settled(machine, killed.pid)
    report.check("a killed child leaves the list", killed.pid not in machine.rows(last), f"{waited:.2f} s")
    gate = machine.gpusnap("diff", str(first), str(last), "--fail-above", str(RESIDUE))
    report.check("nothing is left behind (diff --fail-above)", gate.returncode == 0, gate.stderr.strip())


def show_costs(report: Report) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "calls.py")], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if not report.check("every NVML call was timed", done.returncode == 0, done.stderr.strip()[-200:]):
        return
    report.note(f"{'call':52} {'first µs':>10} {'median µs':>10} {'worst µs':>10}")
    for row in json.loads(done.stdout):
        figures = f"{row['first_us']:10.1f} {row['median_us']:10.1f} {row['worst_us']:10.1f}"
        report.note(f"{row['call']:52} {figures} {row['error']}")


def run(report: Report, machine: Machine, holders: list[Holder]) -> None:
    probe = Holder(0)
    machine.uuid = probe.facts["uuid"]
    probe.end()
    first, _ = settled(machine, probe.pid)
    card = machine.card(first)
    report.note(f"{card['model']}, driver {card['driver_version']}, {machine.uuid}")
    check_totals(report, card)
    holders += [Holder(0), Holder(256 * MIB), Holder(1024 * MIB), Holder(128 * MIB, "--leader-exits")]
    bare, small, large, leaderless = holders
    held = machine.snap()
    check_totals(report, machine.card(held))
    if small.pid in machine.rows(held):
        check_sizes(report, machine, first, held, holders)
        check_appeared(report, machine.diff(first, held), holders)
        grown = check_growth(report, machine, held, small)
        check_states(report, machine, bare, leaderless)
        check_end(report, machine, grown, large)
        leaderless.end()
        bare.end()
        settled(machine, leaderless.pid)
        check_nothing_left(report, machine, first, small)
    else:
        # NVML speaks the host's pids: in a container none of these is known here (nvidia-docker#179).
        outside = os.readlink("/proc/self/ns/pid") != INITIAL_PID_NAMESPACE
        report.check("a missing row is another pid namespace's", outside)
        wrong = [row for row in machine.rows(held).values() if row["pid_namespace"] != "host" or row["name"]]
        report.check("no foreign pid was given a name", not wrong, wrong)
        report.note(f"{len(machine.rows(held))} rows are listed; sizes, states and ends are not checked")


def main() -> int:
    report = Report()
    holders: list[Holder] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            run(report, Machine(Path(folder)), holders)
        except NoCard as problem:
            print(f"no NVIDIA card here: {problem}")
            return 2
        finally:
            for one in holders:
                one.end()
    show_costs(report)
    print(f"{report.failures} checks failed" if report.failures else "all checks passed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
