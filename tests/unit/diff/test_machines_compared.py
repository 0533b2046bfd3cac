"""Every captured machine against itself a second later: nothing happened, on any vendor's hardware."""

from __future__ import annotations

import json

import jsonschema
import pytest

from gpusnap import schema
from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.codec_read import Reader
from gpusnap.collect import collect
from gpusnap.diff import diff
from gpusnap.diff.gates import has_differences
from gpusnap.render.columns import display_width
from gpusnap.render.diff_text import diff_lines, diff_markdown
from gpusnap.render.screen import Screen
from tests.unit.test_machines import MACHINES, options_of


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
def test_a_machine_does_not_differ_from_itself(machine: object) -> None:
    path = MACHINES[MACHINES.index(machine)]  # type: ignore[arg-type]
    doc = Reader(path.name).read(dumps(collect(CapturedHost(path), options_of(path))))
    # A machine that was kept without its boot id: rows of an unknown boot pair with nothing.
    doc["boot_id"] = doc["boot_id"] or "5d1f9c8e-2f0a-4c6e-9f6b-0a7f3f1f2d10"
    result = diff(doc, doc)
    jsonschema.validate(json.loads(dumps(dict(result))), json.loads(schema.text("diff")))
    assert not has_differences(result)
    assert {row["status"] for row in result["processes"]} <= {"same", "unknown"}
    assert all(card["status"] in ("matched", "lost") and not card["changes"] for card in result["adapters"])
    assert all(not item["delta_bytes"] for item in result["unattributed"])
    assert all(display_width(line) <= 72 for line in diff_lines(result, doc, doc, Screen(72)))
    assert diff_markdown(result, doc, doc)
