"""Short words for tests of explanations: explain a document, pick a finding, read all that it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.explanation import explain_history, explain_snapshot
from gpusnap.explain.history import History
from gpusnap.explain.view import Surroundings, Viewer

if TYPE_CHECKING:
    from gpusnap.model import Explanation, Finding, Snapshot

ALICE = Viewer(1000, "alice")
ROOT = Viewer(0, "root")
QUIET = Surroundings(listening=frozenset())


def explain(document: Snapshot, viewer: Viewer = ALICE, around: Surroundings = QUIET) -> Explanation:
    return explain_snapshot(document, viewer=viewer, around=around).document


def only(explanation: Explanation, code: str) -> Finding:
    (found,) = [one for one in explanation["findings"] if one["code"] == code]
    return found


def codes(explanation: Explanation) -> list[str]:
    return [one["code"] for one in explanation["findings"]]


def words(finding: Finding) -> str:
    return " ".join([finding["title"], *finding["evidence"], *finding["advice"]])


def everything(explanation: Explanation) -> str:
    return " ".join([explanation["answer"], *(words(one) for one in explanation["findings"])])


def recording(documents: list[Snapshot]) -> Explanation:
    return explain_history(History().feed(documents), viewer=ALICE).document
