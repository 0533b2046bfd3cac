"""A process by psutil, where there is no `/proc`: Windows and macOS.

    {"create_time": 1796030000.25, "name": "python.exe", "ppid": 4, ..., "username": {"error": "access-denied"}}

psutil takes what it can of a protected process from the system's own list, without a handle; what it can't is an
error of that one value (gpustat#121: one AccessDenied ended the whole listing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_VALUES = ("name", "ppid", "status", "exe", "cmdline", "cwd", "username")


def process_facts(pid: int) -> dict[str, Any]:
    """ProcessLookupError for a pid that is not there."""
    import psutil

    try:
        process = psutil.Process(pid)
        facts: dict[str, Any] = {"create_time": process.create_time()}
    except psutil.NoSuchProcess as gone:
        raise ProcessLookupError(3, f"no process {pid}") from gone
    except psutil.AccessDenied as denied:
        raise PermissionError(13, f"process {pid}") from denied

    def ask(value: Callable[[], Any]) -> Any:
        try:
            return value()
        except psutil.AccessDenied:
            return {"error": "access-denied"}
        except psutil.ZombieProcess:
            return {"error": "zombie"}
        except psutil.NoSuchProcess:
            return {"error": "gone"}
        except OSError as error:
            return {"error": str(error.strerror or error)}

    for name in _VALUES:
        facts[name] = ask(getattr(process, name))
    facts["rss"] = ask(lambda: process.memory_info().rss)
    facts["cpu_seconds"] = ask(lambda: sum(process.cpu_times()[:2]))
    facts["uid"] = ask(lambda: process.uids().effective) if hasattr(process, "uids") else None
    return facts
