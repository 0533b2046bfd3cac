"""Evaluates expressions on the real binding in a process of its own: `python -m tests.standin.ask`.

NVML is found by the loader, which reads `LD_LIBRARY_PATH` only when a process starts. Expressions come as a JSON
list on stdin; each answer is a value, or `{"error": code}`, or `{"raises": class}` where it was no NVML error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.standin.scenario import Scenario

ROOT = Path(__file__).parents[2]


def ask(environment: Mapping[str, str], expressions: Sequence[str]) -> list[Any]:
    """What pynvml answers; `h(1)` is the handle of card 1, `p(1, 0)` of its first partition."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.standin.ask"],
        input=json.dumps(expressions),
        env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(environment),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[Any] = json.loads(done.stdout)
    return answers


def ask_machine(folder: Path, machine: Scenario, *expressions: str, missing: Iterable[str] = ()) -> list[Any]:
    return ask(machine.environment(folder, missing=missing), expressions)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "_fields_"):
        return {name: getattr(value, name) for name, _ in value._fields_}
    if hasattr(value, "value"):
        return value.value
    return vars(value) if hasattr(value, "__dict__") else value


def _fields(values: Any) -> list[Any]:
    return [one.value.ullVal if one.nvmlReturn == 0 else {"error": one.nvmlReturn} for one in values]


def _one(expression: str, names: dict[str, Any]) -> Any:
    pynvml = names["pynvml"]
    try:
        return _plain(eval(expression, names))  # noqa: S307 (the test's own text)
    except pynvml.NVMLError as error:
        return {"error": error.value}
    except (pynvml.NVMLLibraryMismatchError, UnicodeDecodeError) as error:
        return {"raises": type(error).__name__}


def main() -> None:
    import pynvml

    names = {name: value for name, value in vars(pynvml).items() if not name.startswith("__")}
    names["pynvml"] = pynvml
    names["h"] = pynvml.nvmlDeviceGetHandleByIndex
    names["p"] = lambda card, part: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(names["h"](card), part)
    names["fields"] = lambda device, ids: _fields(pynvml.nvmlDeviceGetFieldValues(device, ids))
    first = _one("nvmlInit()", names)
    answers = [] if first is None else [first]
    if first is None:
        answers = [_one(expression, names) for expression in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
