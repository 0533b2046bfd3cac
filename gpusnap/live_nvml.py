"""NVML of this machine through `pynvml` (from nvidia-ml-py), behind plain values.

The real ctypes layer stays in use: nothing here patches `pynvml`. Sources: nvml.h and pynvml.py 13.615.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from gpusnap.host import NvmlError, NvmlUnavailable, nvml_init_failed
from gpusnap.live_nvml_lists import PROCESS_LISTS, ListReader

# Where containers and WSL keep the library when it is not on the loader's path (gpu-manager#101, WSL guide).
LIBRARY_PLACES = (
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/run/opengl-driver/lib",
)
_SONAME = "libnvidia-ml.so.1"


def open_nvml() -> LiveNvml:
    """Load the library, import the binding, nvmlInit; NvmlUnavailable says what is wrong.

    The library first: without one the binding, half of what `snap` costs, is not needed.
    """
    library = _load_library() if os.name == "posix" else None
    with warnings.catch_warnings():
        # The distribution `pynvml` hooks this import to print a FutureWarning (OpenJarvis#389).
        warnings.simplefilter("ignore", FutureWarning)
        try:
            import pynvml
        except ImportError as missing:
            raise NvmlUnavailable("absent", f"python module pynvml: {missing}") from missing
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):  # vllm PR#7649: another package of that name
        raise NvmlUnavailable("failed", f"not nvidia-ml-py: {pynvml.__file__}")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        code = int(error.value)
        loaded = _loaded_library()
        _let_go_if_replaced(pynvml, library)
        raise nvml_init_failed(code, _error_names(pynvml).get(code, f"NVML_ERROR_{code}"), loaded) from error
    return LiveNvml(pynvml, library)


def _load_library() -> Any:
    """dlopen from the usual places, so that the binding's own dlopen by soname finds it loaded."""
    import ctypes

    try:
        return ctypes.CDLL(_SONAME)
    except OSError as unknown:
        tried = [f"{folder}/{_SONAME}" for folder in LIBRARY_PLACES]
        for path in tried:
            try:
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
        places = " ".join(LIBRARY_PLACES)
        raise NvmlUnavailable("absent", f"{_SONAME}: not on the loader's path nor in {places}") from unknown


def _loaded_library() -> str | None:
    """The real path of the loaded library; its file name ends in the driver version it belongs to."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                if "libnvidia-ml.so" in line:
                    return os.path.realpath(line[line.index("/") :].rstrip())
    except (OSError, ValueError):
        return None
    return None


def _let_go_if_replaced(pynvml: Any, library: Any) -> None:
    """Unload a library whose file an update has replaced, and the binding whose pointers lead into it.

    The loader gives the old one for its soname as long as it is loaded, and that one can't talk to the new
    kernel module: a recorder would report the mismatch until it is started again (shine-cluster#30).
    """
    if library is None or not _is_replaced():
        return
    import sys
    from _ctypes import dlclose

    sys.modules.pop("pynvml", None)
    for loaded in (library, pynvml.nvmlLib):
        if loaded is not None:
            dlclose(loaded._handle)


def _is_replaced() -> bool:
    """Whether the file that was mapped is no longer the one that bears its name."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            line = next((line for line in maps if "libnvidia-ml.so" in line), None)
        if line is None:
            return False
        _, _, _, _, inode, path = line.rstrip("\n").split(None, 5)
        return path.endswith(" (deleted)") or os.stat(path).st_ino != int(inode)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _error_names(pynvml: Any) -> dict[int, str]:
    """nvmlReturn_t -> NVML's own spelling."""
    return {value: name for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")}


class LiveNvml:
    """`Nvml` over the real library. Handles are fetched once."""

    def __init__(self, pynvml: Any, library: Any = None) -> None:
        self._pynvml = pynvml
        self._library = library
        self._handles: dict[str, Any] = {}
        self._error_names: dict[int, str] = {}
        self._lists = ListReader()
        self.version: str | None = _binding_version()

    def call(self, function: str, *args: object) -> object:
        pynvml = self._pynvml
        try:
            special = _SPECIAL.get(function)
            if special is not None:
                return special(self, *args)
            target = getattr(pynvml, function, None)
            if target is None:
                raise NvmlError(13, "NVML_ERROR_FUNCTION_NOT_FOUND", f"not in nvidia-ml-py {self.version}")
            if args and isinstance(args[0], str):
                args = (self.handle(args[0]), *args[1:])
            return _plain(target(*args))
        except pynvml.NVMLError as error:
            raise self.error(int(error.value)) from error
        except pynvml.NVMLLibraryMismatchError as error:
            # Not an NVMLError: what the binding raises for a missing symbol of drivers before R510.
            raise NvmlError(13, "NVML_ERROR_FUNCTION_NOT_FOUND", str(error)) from error

    def error(self, code: int) -> NvmlError:
        """A card has a dozen calls that it does not support, at every sample: the names are looked up once."""
        if not self._error_names:
            self._error_names = _error_names(self._pynvml)
        return NvmlError(code, self._error_names.get(code, f"NVML_ERROR_{code}"))

    def handle(self, device: str) -> Any:
        """`"0"`: the card of that index; `"0/3"`: its fourth MIG partition slot."""
        known = self._handles.get(device)
        if known is None:
            card, _, slot = device.partition("/")
            if slot:
                known = self._pynvml.nvmlDeviceGetMigDeviceHandleByIndex(self.handle(card), int(slot))
            else:
                known = self._pynvml.nvmlDeviceGetHandleByIndex(int(card))
            self._handles[device] = known
        return known

    def close(self) -> None:
        self._handles.clear()
        try:  # noqa: SIM105 - contextlib costs an import
            self._pynvml.nvmlShutdown()
        except self._pynvml.NVMLError:
            pass  # a driver that is gone can't be told
        _let_go_if_replaced(self._pynvml, self._library)


def _open_device(nvml: LiveNvml, *args: object) -> object:
    """Only whether the handle can be had; a lost card answers here."""
    nvml.handle(str(args[0]))
    return None


def _process_list(function: str) -> Any:
    def read(nvml: LiveNvml, *args: object) -> object:
        return nvml._lists.read(nvml, nvml._pynvml, function, str(args[0]))

    return read


def _memory_v2(nvml: LiveNvml, *args: object) -> object:
    pynvml = nvml._pynvml
    if not hasattr(pynvml, "nvmlMemory_v2"):
        raise NvmlError(13, "NVML_ERROR_FUNCTION_NOT_FOUND")
    return _plain(pynvml.nvmlDeviceGetMemoryInfo(nvml.handle(str(args[0])), version=pynvml.nvmlMemory_v2))


def _field_value(nvml: LiveNvml, *args: object) -> object:
    """One value of nvmlDeviceGetFieldValues: (device, field id) -> number."""
    pynvml = nvml._pynvml
    (answer,) = pynvml.nvmlDeviceGetFieldValues(nvml.handle(str(args[0])), [args[1]])
    code = _attribute(answer, "nvmlReturn")
    if code != 0:
        raise nvml.error(code)
    kind = _FIELD_KINDS.get(_attribute(answer, "valueType"), "ullVal")
    return _plain(_attribute(_attribute(answer, "value"), kind))


_FIELD_KINDS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


_SPECIAL = {
    "nvmlDeviceGetHandleByIndex": _open_device,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetFieldValue": _field_value,
    **{function: _process_list(function) for function in PROCESS_LISTS},
}


_AS_THEY_ARE = frozenset({int, float, str, bool, type(None)})
_attribute = object.__getattribute__


def _plain(value: Any) -> object:
    """Structs become dictionaries, bytes text (UnicodeDecodeError where it is none), tuples lists."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    fields = getattr(value, "_fields_", None)
    if fields is not None:
        # Past the binding's own attribute access, which decodes each value whatever it is.
        return {field[0]: _plain(_attribute(value, field[0])) for field in fields}
    if hasattr(value, "__dict__"):  # what the binding makes of a struct: a list may hold hundreds
        return {name: item if type(item) in _AS_THEY_ARE else _plain(item) for name, item in vars(value).items()}
    return getattr(value, "value", str(value))


def _binding_version() -> str | None:
    """Read from the installed metadata's folder name: importlib.metadata costs more than a sample."""
    import pynvml

    folder = os.path.dirname(os.path.abspath(pynvml.__file__))
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for name in names:
        if name.startswith("nvidia_ml_py-") and name.endswith(".dist-info"):
            return str(name)[len("nvidia_ml_py-") : -len(".dist-info")]
    return None
