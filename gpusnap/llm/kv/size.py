"""Plan and settings -> bytes of each layer, as the constructors of `llama_kv_cache*` allocate them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv import families
from gpusnap.llm.kv.facts import Unsettled
from gpusnap.llm.kv.settings import is_quantized, pad, row_bytes

if TYPE_CHECKING:
    from gpusnap.llm.kv.plan import Layer, Plan
    from gpusnap.llm.kv.settings import CacheSettings

_F32 = 4


def cache_bytes(plan: Plan, settings: CacheSettings) -> list[int]:
    """Attention cache of each layer."""
    check(plan, settings)
    flash = settings.flash_attention and plan.architecture not in families.WITHOUT_FLASH_ATTENTION
    if plan.architecture == "deepseek4":
        return [_compressed_bytes(layer, plan, settings) for layer in plan.layers]
    return [_cells(layer, plan, settings) * _token_bytes(layer, plan, settings, flash) for layer in plan.layers]


def state_bytes(plan: Plan, settings: CacheSettings) -> list[int]:
    """Recurrent state of each layer: a row for each sequence, and copies to roll back to where it drafts."""
    copies = 1 + (settings.draft_states if plan.architecture in families.ROLLBACK else 0)
    return [layer.state * _F32 * settings.sequences * copies for layer in plan.layers]


def token_bytes(plan: Plan, settings: CacheSettings) -> int | None:
    """What one more token costs; None where that depends on how many there are."""
    if plan.architecture == "deepseek4" or _is_windowed(plan, settings):
        return None
    flash = settings.flash_attention and plan.architecture not in families.WITHOUT_FLASH_ATTENTION
    return sum(_token_bytes(layer, plan, settings, flash) for layer in plan.layers)


def _is_windowed(plan: Plan, settings: CacheSettings) -> bool:
    return settings.windows and not settings.swa_full and any(layer.windowed for layer in plan.layers)


def doubts(plan: Plan, settings: CacheSettings) -> str:
    """Why a figure is an estimate, in words; empty where it is exact."""
    if settings.doubt:
        return settings.doubt
    if plan.architecture in families.ESTIMATED:
        return families.ESTIMATED[plan.architecture]
    if _is_windowed(plan, settings) and (is_quantized(settings.type_k) or is_quantized(settings.type_v)):
        return "some builds keep windowed layers f16"  # between llama.cpp#21277 and ggml 0.25.3
    return ""


def _token_bytes(layer: Layer, plan: Plan, settings: CacheSettings, flash: bool) -> int:
    value = layer.value if flash or layer.value == 0 else plan.value_padded
    rows = row_bytes(settings.type_k, layer.key) + row_bytes(settings.type_v, value)
    return rows + row_bytes(settings.type_k, layer.index_key) + row_bytes(settings.type_v, layer.index_value)


def _cells(layer: Layer, plan: Plan, settings: CacheSettings) -> int:
    """Of all streams."""
    if layer.windowed and plan.window is not None:
        return settings.window_cells(plan.window) * settings.streams
    return settings.cells * settings.streams


def _compressed_bytes(layer: Layer, plan: Plan, settings: CacheSettings) -> int:
    """deepseek4: every sequence has its own cells, unified or not."""
    window = plan.window or 0
    kept = settings.cells if settings.swa_full else pad(min(settings.cells, window + settings.ubatch), 256)
    total = kept * row_bytes(settings.type_k, layer.key)
    if layer.ratio:
        rows = pad(max(1, -(-settings.cells // layer.ratio)), 256)
        total += rows * (row_bytes(settings.type_k, layer.key) + row_bytes(settings.type_k, layer.index_key))
    return total * settings.sequences


def check(plan: Plan, settings: CacheSettings) -> None:
    """What the engine refuses to start with can't be what runs (`llama_init_from_model`)."""
    if settings.context <= 0 or settings.sequences <= 0 or settings.ubatch <= 0:
        raise Unsettled("ambiguous", "the context is not known")
    flash = settings.flash_attention and plan.architecture not in families.WITHOUT_FLASH_ATTENTION
    key_blocks, value_blocks = is_quantized(settings.type_k), is_quantized(settings.type_v)
    if plan.key_only and settings.type_k != settings.type_v:
        raise Unsettled("contradiction", f"{plan.architecture} takes one cache type for keys and values")
    if value_blocks and not flash:
        raise Unsettled("contradiction", f"values of type {settings.type_v} need flash attention")
    for key, value in plan.head_widths:
        if (flash and key_blocks and key % 32) or (value_blocks and value % 32):
            raise Unsettled(
                "contradiction", f"heads of {key} and {value} elements can't be quantised in blocks of 32"
            )
