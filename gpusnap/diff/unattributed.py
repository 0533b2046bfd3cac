"""What a card gained or kept that no process row explains, and who is likely to have left it.

The arithmetic of `accounting` already says how much it is; this module looks for whose it was. A process that
exited holds nothing any more, so when the unattributed part grows by what it held, its memory did not come
free (a driver that still keeps the context, a child that lives on: nvitop#134, apache/mxnet#4242). The mirror
holds too: memory that was in use before anybody was listed for it belongs to the row that appeared with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from gpusnap.diff.delta import source_of, subtract, value_at
from gpusnap.diff.hints import why_nothing_explains
from gpusnap.diff.leaves import UNATTRIBUTED, VRAM
from gpusnap.render.reasons import short
from gpusnap.render.units import MIB, format_bytes

if TYPE_CHECKING:
    from gpusnap.diff.delta import Row, Sources
    from gpusnap.diff.match import Boots, Pair
    from gpusnap.diff.processes import Verdict
    from gpusnap.model import ExplainedBy, Process, UnattributedDiff

_OTHER_BOOTS = {
    "other": "the machine was booted in between: nothing of before is left",
    "other-host": "two host names: the figures may have nothing to do with each other",
    "unknown": "without a known boot no process can be told to have come or gone",
}


class Suspect(NamedTuple):
    """A row whose memory left the sum of the listed processes (or joined it)."""

    row: Process
    bytes: int
    says: str
    is_certain: bool


def diff_unattributed(
    pair: Pair, verdicts: list[Verdict], sources: Sources, boots: Boots, survivors: frozenset[tuple[int, int]]
) -> UnattributedDiff:
    """One matched card's row; `survivors` are identities that are on some other card still."""
    before, after = _figure(pair.before), _figure(pair.after)
    delta = cast("int | None", subtract(before, after))
    explained: list[ExplainedBy] = []
    reason = None
    if delta is None:
        reason = _why_unknown(pair, sources)
    elif boots != "same":
        reason = None if delta == 0 else _OTHER_BOOTS[boots]
    elif delta != 0:
        suspects = _suspects(verdicts, sources, survivors, grown=delta > 0)
        explained, rest = _blame(suspects, abs(delta))
        if rest > _tolerance(abs(delta)) or not explained:
            left_clean = bool(suspects) and not explained
            reason = why_nothing_explains(
                pair, verdicts, delta, rest if explained else None, left_clean=left_clean
            )
    return {
        "adapter": pair.either["id"],
        "before_bytes": before,
        "after_bytes": after,
        "delta_bytes": delta,
        "explained_by": explained,
        "reason": reason,
    }


def _figure(card: object) -> int | None:
    return cast("int | None", value_at(cast("Row", card), UNATTRIBUTED))


def _why_unknown(pair: Pair, sources: Sources) -> str:
    """Which side's account has no such figure, and why."""
    words = []
    for name, card, entry in (("before", pair.before, sources.before), ("after", pair.after, sources.after)):
        row = cast("Row", card)
        if value_at(row, UNATTRIBUTED) is None:
            words.append(f"not known {name} ({short(source_of(entry(row), UNATTRIBUTED))})")
    return ", ".join(words)


def _suspects(
    verdicts: list[Verdict], sources: Sources, survivors: frozenset[tuple[int, int]], *, grown: bool
) -> list[Suspect]:
    """Rows that explain growth by going or by losing their figure; shrinking, by coming or by gaining one."""
    found = []
    for verdict in verdicts:
        gone, come = (verdict.before, verdict.after) if grown else (verdict.after, verdict.before)
        if gone is None or gone["vram_bytes"] is None:
            continue
        held, status = gone["vram_bytes"], verdict.row["status"]
        if come is not None and status != "replaced":
            if come["vram_bytes"] is None:
                entry = sources.after(cast("Row", come)) if grown else sources.before(cast("Row", come))
                says = _figure_says(held, short(entry.get(VRAM)), grown=grown)
                found.append(Suspect(gone, held, says, is_certain=True))
        elif status == "unknown":
            says = f"is not listed {'any more' if grown else 'before'}; it held {format_bytes(held)}"
            found.append(Suspect(gone, held, says, is_certain=False))
        else:
            found.append(Suspect(gone, held, _verb(gone, survivors, grown=grown), is_certain=False))
    return sorted(found, key=lambda suspect: (not suspect.is_certain, -suspect.bytes, suspect.row["pid"]))


def _figure_says(held: int, why: str, *, grown: bool) -> str:
    if grown:
        return f"runs on, but its {format_bytes(held)} became unknown ({why})"
    return f"was unknown before ({why}), now {format_bytes(held)}"


def _verb(row: Process, survivors: frozenset[tuple[int, int]], *, grown: bool) -> str:
    if not grown:
        return "appeared with"
    start = row["start_ticks"]
    return "left the card holding" if start is not None and (row["pid"], start) in survivors else "exited holding"


def _blame(suspects: list[Suspect], amount: int) -> tuple[list[ExplainedBy], int]:
    """Who explains how much of `amount`, and what is left over."""
    explained: list[ExplainedBy] = []
    rest = amount
    for suspect in suspects:
        if suspect.is_certain and rest > 0:
            explained.append(_explanation(suspect, min(suspect.bytes, rest), suspect.says))
            rest -= min(suspect.bytes, rest)
    others = [suspect for suspect in suspects if not suspect.is_certain and suspect.bytes > 0]
    # 2 MiB of driver noise are not what is left of 20 GiB.
    others = [suspect for suspect in others if rest >= min(16 * MIB, suspect.bytes // 100)]
    if rest <= 0 or not others:
        return explained, max(0, rest)
    exact = [suspect for suspect in others if abs(suspect.bytes - rest) <= _tolerance(rest)]
    total = sum(suspect.bytes for suspect in others)
    if len(exact) == 1 or len(others) == 1:
        suspect = (exact or others)[0]
        share = min(suspect.bytes, rest)
        return [*explained, _explanation(suspect, share, _came_free(suspect, share))], rest - share
    if total <= rest + _tolerance(rest):
        explained += [
            _explanation(suspect, suspect.bytes, _came_free(suspect, suspect.bytes)) for suspect in others
        ]
        return explained, max(0, rest - total)
    together = (
        f"; of {format_bytes(total)} of {len(others)} such processes, {format_bytes(total - rest)} came free"
    )
    for suspect in others:
        says = f"{suspect.says} {format_bytes(suspect.bytes)}{together}"
        explained.append(_explanation(suspect, min(suspect.bytes, rest), says))
    return explained, 0


def _came_free(suspect: Suspect, share: int) -> str:
    """`exited holding 20.1 GiB; 0 B came free`."""
    if suspect.says.startswith("is not listed"):
        return suspect.says
    held = f"{suspect.says} {format_bytes(suspect.bytes)}"
    if suspect.says.startswith("appeared"):
        return f"{held}; {format_bytes(share)} of it was in use before"
    free = suspect.bytes - share
    return f"{held}; {format_bytes(free)} came free"


def _explanation(suspect: Suspect, share: int, says: str) -> ExplainedBy:
    return {"pid": suspect.row["pid"], "name": suspect.row["name"], "bytes": share, "says": says}


def _tolerance(amount: int) -> int:
    """Drivers round to pages of 2 MiB at most, and other processes breathe a little meanwhile."""
    return max(2 * MIB, amount // 100)
