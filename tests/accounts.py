"""A card's account as the README defines it, by hand arithmetic on built rows: the tests' own, not gpusnap's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap import fields

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]


def account(card: Row, rows: Sequence[Row]) -> None:
    """The README's identities: hand arithmetic on the builder's own rows."""
    known = card["processes_listed"] != "unavailable"
    rows = [row for row in rows if row["adapter"] == card["id"] and not row["self"]]
    attributed = sum(row["vram_bytes"] for row in rows if row["vram_bytes"] is not None) if known else None
    shared = sum(client["vram_bytes"] or 0 for client in card["shared_clients"] or [])
    private = None
    if attributed is not None:
        private = attributed - sum(row["vram_shared_bytes"] or 0 for row in rows if row["vram_bytes"] is not None)
        attributed += shared
    memory = card["memory"]
    used, free, reserved = memory["used_bytes"], memory["free_bytes"], memory["reserved_bytes"]
    inside = 0
    if reserved is not None and used is not None and free is not None:
        inside = 0 if used + free + reserved == memory["total_bytes"] else reserved
    rest = bound = None
    why = card["_provenance"].get("processes_listed", "null:not-exposed")
    if used is not None and attributed is not None and private is not None:
        rest, bound = used - attributed - inside, max(0, used - private - inside)
        if rest < 0:
            rest, why = None, "null:over-attributed"
    by_category: dict[str, int | None] = dict.fromkeys(fields.CATEGORIES, 0 if known else None)
    for name in fields.CATEGORIES:
        figures = [row["vram_bytes"] for row in rows if row["category"] == name]
        if figures and known:
            measured = [figure for figure in figures if figure is not None]
            by_category[name] = sum(measured) if measured else None
    card["accounting"] = {
        "attributed_bytes": attributed,
        "attributed_private_bytes": private,
        "shared_bytes": shared,
        "reserved_bytes": inside,
        "unattributed_bytes": rest,
        "unattributed_max_bytes": bound,
        "free_bytes": free,
        "unmeasured_processes": sum(row["vram_bytes"] is None for row in rows),
        "by_category": by_category,
    }
    for key in fields.ACCOUNTING:
        leaf = f"accounting.{key}"
        value = card["accounting"][key]
        card["_provenance"][leaf] = "computed:sum" if value is not None else why
    for name, value in by_category.items():
        leaf = f"accounting.by_category.{name}"
        card["_provenance"][leaf] = "computed:sum" if value is not None else why
