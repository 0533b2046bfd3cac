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
