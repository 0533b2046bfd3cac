"""The shipped Grafana dashboard and alert rules ask only for metrics that gpusnap exports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpusnap.render.metrics import FAMILIES
from gpusnap.render.prometheus import exposed

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["grafana/gpusnap.json", "prometheus/gpusnap-alerts.yml"])
def test_only_metrics_that_exist_are_asked_for(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    asked = set(re.findall(r"\bgpusnap_[a-z_]+", text))
    assert asked
    assert asked <= {exposed(family) for family in FAMILIES.values()}


def test_the_dashboard_is_json_and_never_bridges_a_gap() -> None:
    dashboard = json.loads((EXAMPLES / "grafana/gpusnap.json").read_text())
    curves = [panel for panel in dashboard["panels"] if panel["type"] == "timeseries"]
    assert len(curves) == 2
    assert all(panel["fieldConfig"]["defaults"]["custom"]["spanNulls"] is False for panel in curves)
