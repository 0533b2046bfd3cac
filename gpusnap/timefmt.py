"""Times of the document: RFC 3339, UTC, milliseconds, `Z`. The only place that writes or reads them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 -> `2026-11-30T10:00:00.125Z`."""
    millis = round(seconds * 1000)
    whole, rest = divmod(millis, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:03d}Z"


def parse_rfc3339(text: str) -> float:
    """`2026-11-30T10:00Z`, with or without seconds, fraction or offset -> seconds since 1970; ValueError else."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def are_times(texts: Iterable[str | None]) -> bool:
    """Whether `parse_rfc3339` reads each of many texts that is not None."""
    from datetime import datetime

    parse = datetime.fromisoformat
    try:
        for text in texts:
            if text is not None:
                parse(text)
    except ValueError:
        return False
    return True
