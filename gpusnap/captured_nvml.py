"""NVML of a captured machine: answers from `nvml.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.host import NvmlError

if TYPE_CHECKING:
    from gpusnap.captured import CapturedHost


class CapturedNvml:
    """Answers from `nvml.json`; a call that is not there is a function that the driver does not have."""

    def __init__(self, host: CapturedHost) -> None:
        self._host = host
        self.version: str | None = host.nvml_answers.get("version")

    def call(self, function: str, *args: object) -> object:
        calls = self._host.nvml_answers.get("calls", {})
        key = " ".join([function, *map(str, args)])
        if function == "nvmlDeviceGetProcessUtilization":  # its last argument is a time
            key = f"{function} {args[0]}"
        answer = calls.get(key, {"error": 13})
        if isinstance(answer, dict):
            if "error" in answer:
                code = int(answer["error"])
                raise NvmlError(code, NVML_NAMES.get(code, f"NVML_ERROR_{code}"))
            if "hex" in answer:
                return bytes.fromhex(answer["hex"]).decode()
        return answer

    def close(self) -> None:
        return None


# nvmlReturn_t as nvml.h spells it.
NVML_NAMES = {
    1: "NVML_ERROR_UNINITIALIZED",
    2: "NVML_ERROR_INVALID_ARGUMENT",
    3: "NVML_ERROR_NOT_SUPPORTED",
    4: "NVML_ERROR_NO_PERMISSION",
    6: "NVML_ERROR_NOT_FOUND",
    7: "NVML_ERROR_INSUFFICIENT_SIZE",
    8: "NVML_ERROR_INSUFFICIENT_POWER",
    9: "NVML_ERROR_DRIVER_NOT_LOADED",
    10: "NVML_ERROR_TIMEOUT",
    11: "NVML_ERROR_IRQ_ISSUE",
    12: "NVML_ERROR_LIBRARY_NOT_FOUND",
    13: "NVML_ERROR_FUNCTION_NOT_FOUND",
    14: "NVML_ERROR_CORRUPTED_INFOROM",
    15: "NVML_ERROR_GPU_IS_LOST",
    16: "NVML_ERROR_RESET_REQUIRED",
    17: "NVML_ERROR_OPERATING_SYSTEM",
    18: "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    19: "NVML_ERROR_IN_USE",
    20: "NVML_ERROR_MEMORY",
    21: "NVML_ERROR_NO_DATA",
    22: "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED",
    23: "NVML_ERROR_INSUFFICIENT_RESOURCES",
    24: "NVML_ERROR_FREQ_NOT_SUPPORTED",
    25: "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
    26: "NVML_ERROR_DEPRECATED",
    27: "NVML_ERROR_NOT_READY",
    28: "NVML_ERROR_GPU_NOT_FOUND",
    29: "NVML_ERROR_INVALID_STATE",
    999: "NVML_ERROR_UNKNOWN",
}
