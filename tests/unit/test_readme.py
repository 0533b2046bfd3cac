"""README commands print what README says: each `console` block is run from the checkout's root.

A line `$ command` is run by a shell with the installed `gpusnap` first on PATH; the lines below it, up to the next
command, are its output. A line that is only `...` stands for any lines, `…` at the end of one for its rest.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from gpusnap.llm.servers import all_servers
from tests.snapping import run_gpusnap
from tests.surroundings import surroundings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """Each command with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(expected: list[str], printed: list[str]) -> bool:
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(matches(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    want, got = expected[0].rstrip(), printed[0].rstrip()
    same = got.startswith(want[:-1]) if want.endswith("…") else got == want
    return same and matches(expected[1:], printed[1:])


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples and a `gpusnap` on PATH; what commands write stays in it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "bin").mkdir()
    script = folder / "bin/gpusnap"
    script.write_text(f'#!/bin/sh\nexec {quote(sys.executable)} -m gpusnap "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_readme_commands_print_what_readme_says(block: str, workplace: Path) -> None:
    path = f"{workplace / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = surroundings({"PATH": path, "COLUMNS": "120", "TZ": "UTC"})
    for command, expected in commands_of(block):
        done = subprocess.run(
            ["bash", "-c", command], cwd=workplace, env=env, capture_output=True, check=False, timeout=60
        )
        printed = (done.stdout + done.stderr).decode().splitlines()
        assert matches(expected, printed), "\n".join([command, *printed])


@pytest.mark.parametrize("command", ["snap", "ps", "diff", "record", "explain"])
def test_every_option_is_in_the_readme(command: str) -> None:
    shown = run_gpusnap(command, "--help", env={"COLUMNS": "200"}).stdout.decode()
    options = set(re.findall(r"^\s+(?:-\w, )?(--[a-z][a-z-]*)", shown, re.MULTILINE)) - {"--help"}
    assert options
    missing = {option for option in options if not re.search(re.escape(option) + r"\b", README)}
    assert not missing


def test_every_path_that_a_server_is_asked_for_is_in_the_readme() -> None:
    """The last column of the table of servers: "for the paths above and no others"."""
    (table,) = re.findall(r"^\| server \| recognised by .*\n\|[-|]+\n((?:\|.*\n)+)", README, re.MULTILINE)
    named = [set(re.findall(r"`(/[^`]+)`", row.split("|")[-2])) for row in table.splitlines()]
    asked = [set(server.PATHS) for server in all_servers()]
    assert sorted(map(sorted, named)) == sorted(map(sorted, asked))


def test_the_lines_of_python_give_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 - our own lines
    assert f"# {names['grown']}\n" in block


GATES = [
    line.partition("jq -e '")[2].partition("'")[0] for line in README.splitlines() if line.startswith("jq -e '")
]
LITTLE, MUCH = 1 << 20, 64 << 30


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("figures", "passes"),
    [([LITTLE], True), ([LITTLE, LITTLE], True), ([LITTLE, MUCH], False), ([LITTLE, None], False), ([], False)],
)
def test_a_gate_of_a_summary_takes_no_unknown_for_fine(gate: str, figures: list[int | None], passes: bool) -> None:
    """jq's `all` of nothing is true: a runner that lost its only card would pass."""
    rows = [{"peak_bytes": figure, "left_bytes": figure} for figure in figures]
    summary = json.dumps({"adapters": rows})
    done = subprocess.run(["jq", "-e", gate], input=summary, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((0, "true\n") if passes else (1, "false\n"))


def test_there_are_two_gates() -> None:
    assert len(GATES) == 2
