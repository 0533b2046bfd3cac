"""How a rule writes its finding down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.view import Found

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from gpusnap.model import Subject

    Severity = Literal["info", "notice", "warning", "critical"]

SEVERITIES = ("critical", "warning", "notice", "info")


def found(
    code: str,
    severity: Severity,
    subject: Subject,
    title: str,
    evidence: Sequence[str],
    advice: Sequence[str] = (),
    *,
    headline: str | None = None,
    pids: Sequence[int] = (),
) -> Found:
    return Found(
        {
            "code": code,
            "severity": severity,
            "subject": subject,
            "title": title,
            "evidence": list(evidence),
            "advice": list(advice),
        },
        headline,
        tuple(pids),
    )
