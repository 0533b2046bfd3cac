"""What a program is, by its name. Data follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def classify(
    name: str | None,
    exe: str | None,  # noqa: ARG001
    words: Sequence[str],  # noqa: ARG001
    *,
    is_kernel_thread: bool = False,
) -> tuple[str, str | None]:
    """(category, role); no program is known yet."""
    if is_kernel_thread:
        return "kernel", None
    return ("llm", None) if name == "llama-server" else ("unknown", None)
