"""What each NVML call costs on this machine, in microseconds: median and worst of many. Prints JSON."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25
# A byte counter over 20 ms each: fewer rounds.
SLOW = ("nvmlDeviceGetPcieThroughput",)

# Everything that a row of `snap` may need, with the arguments after the handle.
CALLS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("nvmlDeviceGetName", ()),
    ("nvmlDeviceGetUUID", ()),
    ("nvmlDeviceGetPciInfo", ()),
    ("nvmlDeviceGetMinorNumber", ()),
    ("nvmlDeviceGetMemoryInfo", ()),
    ("nvmlDeviceGetBAR1MemoryInfo", ()),
    ("nvmlDeviceGetUtilizationRates", ()),
    ("nvmlDeviceGetEncoderUtilization", ()),
    ("nvmlDeviceGetDecoderUtilization", ()),
    ("nvmlDeviceGetTemperature", (0,)),
    ("nvmlDeviceGetTemperatureV", (0,)),
    ("nvmlDeviceGetFanSpeed", ()),
    ("nvmlDeviceGetPowerUsage", ()),
    ("nvmlDeviceGetEnforcedPowerLimit", ()),
    ("nvmlDeviceGetTotalEnergyConsumption", ()),
    ("nvmlDeviceGetClockInfo", (0,)),
    ("nvmlDeviceGetClockInfo", (2,)),
    ("nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("nvmlDeviceGetCurrPcieLinkGeneration", ()),
    ("nvmlDeviceGetMaxPcieLinkGeneration", ()),
    ("nvmlDeviceGetCurrPcieLinkWidth", ()),
    ("nvmlDeviceGetMaxPcieLinkWidth", ()),
    ("nvmlDeviceGetPcieThroughput", (0,)),
    ("nvmlDeviceGetPcieThroughput", (1,)),
    ("nvmlDeviceGetEccMode", ()),
    ("nvmlDeviceGetTotalEccErrors", (0, 0)),
    ("nvmlDeviceGetTotalEccErrors", (1, 0)),
    ("nvmlDeviceGetTotalEccErrors", (0, 1)),
    ("nvmlDeviceGetTotalEccErrors", (1, 1)),
    ("nvmlDeviceGetRetiredPages", (0,)),
    ("nvmlDeviceGetRetiredPages", (1,)),
    ("nvmlDeviceGetRetiredPagesPendingStatus", ()),
    ("nvmlDeviceGetRemappedRows", ()),
    ("nvmlDeviceGetMigMode", ()),
    ("nvmlDeviceGetMaxMigDeviceCount", ()),
    ("nvmlDeviceGetComputeMode", ()),
    ("nvmlDeviceGetPersistenceMode", ()),
    ("nvmlDeviceGetComputeRunningProcesses_v3", ()),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", ()),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", ()),
    ("nvmlDeviceGetProcessUtilization", (0,)),
)


def timed(function: Callable[..., Any], *args: object, **named: object) -> tuple[float, str]:
    """Microseconds, and what came out: "" or the error's name."""
    import pynvml

    began = time.perf_counter_ns()
    try:
        function(*args, **named)
        problem = ""
    except pynvml.NVMLError as error:
        problem = str(error)
    except UnicodeDecodeError as error:
        problem = type(error).__name__
    return (time.perf_counter_ns() - began) / 1e3, problem


def row(name: str, samples: list[tuple[float, str]]) -> dict[str, Any]:
    spans = [span for span, _ in samples]
    # The first call often pays for more; it is told apart.
    return {
        "call": name,
        "first_us": round(spans[0], 1),
        "median_us": round(median(spans), 1),
        "worst_us": round(max(spans[1:], default=spans[0]), 1),
        "error": samples[0][1],
    }


def main() -> None:
    import pynvml

    rows = [row("nvmlInit", [timed(pynvml.nvmlInit)])]
    rows.append(row("nvmlDeviceGetHandleByIndex", [timed(pynvml.nvmlDeviceGetHandleByIndex, 0)]))
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    second = {"version": pynvml.nvmlMemory_v2}
    samples = [timed(pynvml.nvmlDeviceGetMemoryInfo, handle, **second) for _ in range(ROUNDS)]
    rows.append(row("nvmlDeviceGetMemoryInfo_v2", samples))
    samples = [timed(pynvml.nvmlDeviceGetFieldValues, handle, [82]) for _ in range(ROUNDS)]
    rows.append(row("nvmlDeviceGetFieldValues(82)", samples))
    for name, args in CALLS:
        function = getattr(pynvml, name, None)
        if function is not None:
            rounds = 3 if name in SLOW else ROUNDS
            shown = f"{name}({', '.join(map(str, args))})" if args else name
            rows.append(row(shown, [timed(function, handle, *args) for _ in range(rounds)]))
    rows.append(row("nvmlShutdown", [timed(pynvml.nvmlShutdown)]))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
