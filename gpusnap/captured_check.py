"""Whether the JSON files of a kept machine are what their readers take them for: people edit them by hand."""

from __future__ import annotations

from typing import Any

# Times of a document end with the year 9999.
_LAST_SECOND = 253_402_300_799.0
_KINDS: dict[str, type | tuple[type, ...]] = {
    "platform": str,
    "wall_time": (int, float),
    "uptime": (int, float),
    "own_pid": int,
    "clock_ticks": int,
    "page_size": int,
    "uname": dict,
    "users": dict,
    "pids": list,
    "existing": list,
    "environ": dict,
    "procfs_is_foreign": bool,
}
_PLATFORMS = ("linux", "wsl", "windows", "macos")
_UNAME = ("hostname", "os", "kernel", "arch")


class NotAMachine(ValueError):
    """A file of a kept machine holds something else; the message says which and where."""


def checked(name: str, found: object) -> dict[str, Any]:
    """The object that the file holds; NotAMachine names the file and the place in it."""
    if not isinstance(found, dict):
        raise NotAMachine(f"{name}: expected an object")
    if name == "machine.json":
        _check_machine(name, found)
    elif name.startswith("nvml"):
        _check_nvml(name, found)
    return found


def _check_machine(name: str, found: dict[str, Any]) -> None:
    for key, kind in _KINDS.items():
        if key in found and (
            not isinstance(found[key], kind) or (kind is not bool and isinstance(found[key], bool))
        ):
            raise NotAMachine(f"{name}: {key}: {found[key]!r} is not what stands there")
    if found.get("platform", "linux") not in _PLATFORMS:
        raise NotAMachine(f"{name}: platform: expected one of {', '.join(_PLATFORMS)}")
    for key in ("wall_time", "uptime"):
        if not 0 <= found.get(key, 0) <= _LAST_SECOND:
            raise NotAMachine(f"{name}: {key}: expected seconds from 0 to the year 9999")
    for key in ("clock_ticks", "page_size"):
        if found.get(key, 1) < 1:
            raise NotAMachine(f"{name}: {key}: expected at least 1")
    uname = found.get("uname", {})
    if any(not isinstance(uname.get(key), str | None) for key in _UNAME):
        raise NotAMachine(f"{name}: uname: expected texts for {', '.join(_UNAME)}")


def _check_nvml(name: str, found: dict[str, Any]) -> None:
    calls = found.get("calls", {})
    if not isinstance(calls, dict):
        raise NotAMachine(f"{name}: calls: expected an object")
    for call, answer in calls.items():
        if isinstance(answer, dict) and not isinstance(answer.get("error", 0), int):
            raise NotAMachine(f"{name}: {call}: error: expected NVML's number")
