"""Headers of published models, from their public configurations: tensors with the sizes that the files have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.llm.gguf_files import U32, gguf_file, pair, tensor, text_pair, value_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

F32, F16, Q8_0, Q4_K, Q6_K = 0, 1, 8, 12, 14
_MOSTLY = {Q8_0: 7, Q4_K: 15}  # general.file_type: MOSTLY_Q8_0, MOSTLY_Q4_K_M


def dense(
    architecture: str,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    kv_heads: int,
    head: int,
    feed_forward: int,
    vocabulary: int,
    context: int,
    kind: int,
    tied: bool,
    embedding_kind: int | None = None,
    qk_norm: bool = False,
    more: Sequence[bytes] = (),
) -> bytes:
    """A transformer of the Llama kind: attention, gated feed-forward, norms in F32."""
    values: dict[str, int | str | list[int] | list[bool]] = {
        "block_count": layers,
        "context_length": context,
        "embedding_length": width,
        "feed_forward_length": feed_forward,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
    }
    pairs = [text_pair("general.architecture", architecture), text_pair("general.name", name)]
    if kind in _MOSTLY:
        pairs.append(pair("general.file_type", U32, _MOSTLY[kind].to_bytes(4, "little")))
    pairs += [value_pair(f"{architecture}.{key}", value) for key, value in values.items()]
    embedding = embedding_kind if embedding_kind is not None else kind
    tensors = [("token_embd.weight", (width, vocabulary), embedding), ("output_norm.weight", (width,), F32)]
    if not tied:
        tensors.append(("output.weight", (width, vocabulary), embedding))
    for layer in range(layers):
        block = f"blk.{layer}."
        tensors += [
            (block + "attn_norm.weight", (width,), F32),
            (block + "ffn_norm.weight", (width,), F32),
            (block + "attn_q.weight", (width, heads * head), kind),
            (block + "attn_k.weight", (width, kv_heads * head), kind),
            (block + "attn_v.weight", (width, kv_heads * head), kind),
            (block + "attn_output.weight", (heads * head, width), kind),
            (block + "ffn_gate.weight", (width, feed_forward), kind),
            (block + "ffn_up.weight", (width, feed_forward), kind),
            (block + "ffn_down.weight", (feed_forward, width), kind),
        ]
        if qk_norm:
            tensors += [(block + "attn_q_norm.weight", (head,), F32), (block + "attn_k_norm.weight", (head,), F32)]
    return gguf_file([*pairs, *more], [tensor(*one) for one in tensors])


def qwen3_06b() -> bytes:
    """Qwen3-0.6B Q8_0: 604.15 MiB of tensors, embeddings tied."""
    return dense(
        "qwen3", name="Qwen3 0.6B", layers=28, width=1024, heads=16, kv_heads=8, head=128, feed_forward=3072,
        vocabulary=151936, context=40960, kind=Q8_0, tied=True, qk_norm=True,
    )  # fmt: skip


def qwen3_14b() -> bytes:
    """Qwen3-14B with everything Q4_K: 14.8 billion parameters, 40 layers of 8 KV heads of 128."""
    return dense(
        "qwen3", name="Qwen3 14B", layers=40, width=5120, heads=40, kv_heads=8, head=128, feed_forward=17408,
        vocabulary=151936, context=40960, kind=Q4_K, tied=False, qk_norm=True,
    )  # fmt: skip


def gemma3_4b() -> bytes:
    """Gemma 3 4B: 34 layers of which every sixth sees the whole context, a window of 1,024, 4 KV heads of 256."""
    return dense(
        "gemma3", name="Gemma 3 4B", layers=34, width=2560, heads=8, kv_heads=4, head=256, feed_forward=10240,
        vocabulary=262144, context=131072, kind=Q4_K, tied=True, embedding_kind=Q6_K,
        more=[value_pair("gemma3.attention.sliding_window", 1024)],
    )  # fmt: skip


def llama_70b() -> bytes:
    """Llama 3.3 70B: 80 layers of 8 KV heads of 128: 320 KiB a token."""
    return dense(
        "llama", name="Llama 3.3 70B", layers=80, width=8192, heads=64, kv_heads=8, head=128, feed_forward=28672,
        vocabulary=128256, context=262144, kind=Q4_K, tied=False,
    )  # fmt: skip


def granite_hybrid() -> bytes:
    """Granite 4 H Tiny: 40 layers, of which 4 attend (4 KV heads of 128) and 36 keep a state (Mamba 2)."""
    layers, attending = 40, (5, 15, 25, 35)
    heads = [4 if layer in attending else 0 for layer in range(layers)]
    values: dict[str, int | str | list[int] | list[bool]] = {
        "block_count": layers,
        "context_length": 131072,
        "embedding_length": 1536,
        "attention.head_count": 12,
        "attention.head_count_kv": heads,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 3072,
        "ssm.state_size": 128,
        "ssm.group_count": 1,
        "ssm.time_step_rank": 48,
    }
    pairs = [text_pair("general.architecture", "granitehybrid"), text_pair("general.name", "Granite 4 H Tiny")]
    pairs += [value_pair(f"granitehybrid.{key}", value) for key, value in values.items()]
    tensors = [tensor("token_embd.weight", (1536, 100352), Q8_0)]
    tensors += [tensor(f"blk.{layer}.ffn_down_exps.weight", (512, 1536, 64), Q8_0) for layer in range(layers)]
    return gguf_file(pairs, tensors)
