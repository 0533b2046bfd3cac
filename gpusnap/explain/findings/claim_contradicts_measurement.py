"""What a program says of its memory is not what the driver measures; the measurement stands.

ollama#6160 (22 GB said, 16 GB measured), ollama#17251 (12 GB said, 90 GB measured), ollama#10445 ("100 % GPU").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import entry_of, who
from gpusnap.reading import reason_of
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found

# Warnings with which the readers of logs and local interfaces say so.
CODES = frozenset({"claim-contradicts-measurement", "contradiction"})


def find(view: CardView) -> Iterator[Found]:
    for row in view.rows:
        claims = [
            warning["message"]
            for warning in view.document["warnings"]
            if warning["code"] in CODES
            and warning["pid"] == row["pid"]
            and warning["adapter"] in (None, view.card["id"])
        ]
        entry = entry_of(view.document, row)
        for leaf, source in entry.items():
            if reason_of(source) == "contradiction":
                words = source.partition(" ")[2]
                claims.append(f"{leaf}: {words}" if words else f"{leaf} would be more than is measured")
        if not claims:
            continue
        yield found(
            "claim-contradicts-measurement",
            "notice",
            view.subject(row),
            f"{who(row)}: what it says of its memory is not what is measured",
            [
                f"measured here: {format_bytes(row['vram_bytes'])} "
                f"({entry.get('vram_bytes', 'no source recorded')})",
                *dict.fromkeys(claims),
            ],
            ["Go by the measured figure; the claim is an estimate of the program's own."],
        )
