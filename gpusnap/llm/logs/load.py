"""One load of a model as llama.cpp's own lines tell it: buffers by device, caches, settings.

All sizes are bytes, from the MiB with two decimals that the engine prints. Devices that end in `_Host`, `CPU`
and its kin are the machine's memory (pinned or not) and never a card's: llama-toolchest#163 charged 27 GiB
of `CPU_Mapped` weights and 51 GiB of `ROCm_Host` compute buffers to cards.
"""

from __future__ import annotations

import re

MIB = 1 << 20

_CPU = re.compile(r"(?:CPU|BLAS|ACCEL|AMX|Host|host|RPC\[.*\])(?:$|[_-])|.*_Host$|.*_HOST$", re.DOTALL)
# A buffer type's decoration behind the name of its device: `MTL0_Mapped`, `HTP0-REPACK`, `CUDA0_Split`.
_SUFFIX = re.compile(r"[_-](?:Mapped|REPACK|Private|Split)$")


def is_host(buffer: str) -> bool:
    """Whether a buffer lies in system memory; `RPC[...]` lies on another machine and is no card here either."""
    return _CPU.match(buffer) is not None


def device_of(buffer: str) -> str:
    """`MTL0_Mapped` -> `MTL0`."""
    return _SUFFIX.sub("", buffer)


class Cache:
    """A cache of one kind, closed by its `size = ...` line: KV of full or SWA layers, or recurrent state."""

    __slots__ = ("cells", "layers", "nbytes", "part", "sequences", "streams", "type_k", "type_v")

    def __init__(self, part: str, nbytes: int) -> None:
        self.part = part
        self.nbytes = nbytes
        self.cells: int | None = None
        self.layers: int | None = None
        self.sequences: int | None = None
        self.streams: int | None = None
        self.type_k: str | None = None
        self.type_v: str | None = None


class Context:
    """One llama_context: its settings, buffers and caches."""

    __slots__ = ("buffers", "caches", "draft", "failed", "settings")

    def __init__(self, *, draft: bool = False) -> None:
        self.settings: dict[str, str] = {}
        # (part, buffer name, bytes) in the order of the log; a compute buffer reserved again replaces. Parts are
        # weights, kv, state (recurrent), compute, output, lora, and other, what a fork prints under its own name.
        self.buffers: list[tuple[str, str, int]] = []
        self.caches: list[Cache] = []
        self.draft = draft
        self.failed = False

    def has(self, part: str) -> bool:
        return any(found == part for found, _, _ in self.buffers)

    def replace(self, part: str, buffer: str, nbytes: int) -> None:
        self.buffers = [row for row in self.buffers if row[:2] != (part, buffer)]
        self.buffers.append((part, buffer, nbytes))


class Model:
    """One model's weights: the main one, a draft or a projector."""

    __slots__ = ("buffers", "offloaded", "path", "projection", "role")

    def __init__(self, path: str | None = None, role: str = "main") -> None:
        self.path = path
        self.role = role
        self.buffers: list[tuple[str, int]] = []
        self.offloaded: tuple[int, int] | None = None
        # The engine's dry run (`--fit`) allocates nothing: `no_alloc = 1`, or every line says 0.00 MiB.
        self.projection = False

    def is_projection(self) -> bool:
        return self.projection or (bool(self.buffers) and not any(nbytes for _, nbytes in self.buffers))


class Load:
    """Everything that was loaded together: models and contexts that live side by side."""

    __slots__ = ("build", "contexts", "devices", "failed", "models", "port", "projector", "slots", "tag")

    def __init__(self, tag: str = "", port: int | None = None) -> None:
        self.tag = tag
        self.port = port
        self.models: list[Model] = []
        self.contexts: list[Context] = []
        # Buffers of a projector's (mmproj) encoder.
        self.projector: list[tuple[str, str, int]] = []
        # Device name -> (marketing name, PCI address or None).
        self.devices: dict[str, tuple[str, str | None]] = {}
        self.slots: dict[str, str] = {}
        self.build: str | None = None
        self.failed = False

    def is_projection(self) -> bool:
        return any(model.is_projection() for model in self.models)

    def is_complete(self) -> bool:
        """Weights, a cache or none, and the compute buffers: what a server that answers has printed."""
        return (
            not self.failed
            and not self.is_projection()
            and any(model.buffers for model in self.models)
            and any(context.has("compute") for context in self.contexts)
            and not any(context.failed for context in self.contexts)
        )

    def rows(self) -> list[tuple[str, str, int]]:
        """(part, buffer name, bytes) of everything in the load."""
        rows = [("weights", name, nbytes) for model in self.models for name, nbytes in model.buffers]
        for context in self.contexts:
            rows += context.buffers
        return rows + self.projector

    def by_device(self) -> dict[str, dict[str, int]]:
        """Device -> part -> bytes, cards only: what a buffer in system memory takes is no card's."""
        cards: dict[str, dict[str, int]] = {}
        for part, name, nbytes in self.rows():
            if not is_host(name):
                parts = cards.setdefault(device_of(name), {})
                parts[part] = parts.get(part, 0) + nbytes
        return cards

    def total(self, *parts: str) -> int:
        """Bytes of these parts wherever they lie, system memory included."""
        return sum(nbytes for part, _, nbytes in self.rows() if part in parts)

    def cache_total(self) -> int | None:
        """KV and state as the closing `size = ...` lines say it (`Meta()` prints per-card shares above them)."""
        sizes = [cache.nbytes for context in self.contexts for cache in context.caches]
        return sum(sizes) if sizes else None


def number(text: str) -> float:
    """`224,00` too: the process's locale leaks into printf."""
    return float(text.replace(",", "."))


def mib(text: str) -> int:
    return round(number(text) * MIB)
