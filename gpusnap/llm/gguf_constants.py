"""The `gguf` package's tables without its weight.

`import gguf` pulls numpy and its readers: 165-310 ms, most of it for tables of numbers. `constants.py` alone is
enums and dictionaries and imports nothing, so only that file is loaded, by its path: 7-15 ms, once, and only when
a model file was found. Quantisation sizes, file types, architecture names and key names come from there.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

# LLAMA_FTYPE_GUESSED: the loader's own mark on a file type that it derived from the tensors.
_GUESSED = 1024


class ConstantsMissing(Exception):
    """The `gguf` package is not installed, or no longer keeps its tables in `constants.py`."""


@functools.cache
def load() -> ModuleType:
    package = importlib.util.find_spec("gguf")
    folders = package.submodule_search_locations if package is not None else None
    for folder in folders or ():
        file = Path(folder) / "constants.py"
        spec = importlib.util.spec_from_file_location("gpusnap_gguf_constants", file)
        if spec is None or spec.loader is None or not file.is_file():
            continue
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    raise ConstantsMissing("the gguf package's constants.py was not found")


@functools.cache
def tensor_sizes() -> dict[int, tuple[str, int, int]]:
    """ggml type number -> (name, elements in a block, bytes of a block)."""
    table: dict[Any, tuple[int, int]] = load().GGML_QUANT_SIZES
    return {int(kind): (str(kind.name), *size) for kind, size in table.items()}


@functools.cache
def file_types() -> dict[int, str]:
    """`general.file_type` -> the name that people use: 15 -> `Q4_K_M`, 0 -> `F32`."""
    return {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in load().LlamaFileType}


def file_type_name(number: int) -> str | None:
    number &= ~_GUESSED
    return file_types().get(number)


@functools.cache
def architectures() -> frozenset[str]:
    """Every architecture that the installed `gguf` package names."""
    return frozenset(load().MODEL_ARCH_NAMES.values())


@functools.cache
def key(group: str, name: str, spelling: str) -> str:
    """A metadata key by the package's own name (`Keys.Split.LLM_KV_SPLIT_COUNT`).

    `spelling` serves where the installed package is older than the key: GGUF files outlive both.
    """
    return str(getattr(getattr(load().Keys, group, None), name, spelling))
