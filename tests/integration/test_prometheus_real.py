"""Debian's Prometheus and node_exporter on loopback: what gpusnap writes is what they serve."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.snapping import run_gpusnap

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
MACHINE = str(ROOT / "examples/machines/rtx4080-desktop")
RECORDING = ROOT / "examples/step-leak.jsonl.gz"
ALERTS = ROOT / "examples/prometheus/gpusnap-alerts.yml"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@contextmanager
def serving(command: list[str], url: str) -> Iterator[None]:
    """A server on loopback that is ended afterwards."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    fetch(url)
                    break
                except (urllib.error.URLError, ConnectionError):
                    assert server.poll() is None, "the server has ended"
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            yield
        finally:
            server.terminate()


def prometheus_file(folder: Path) -> Path:
    path = folder / "gpusnap.prom"
    done = run_gpusnap("snap", "--replay", MACHINE, "--format", "prometheus", "--per-pid", "-o", str(path))
    assert done.returncode == 0, done.stderr.decode()
    return path


def test_promtool_finds_nothing_to_lint(tmp_path: Path) -> None:
    with prometheus_file(tmp_path).open("rb") as text:
        done = subprocess.run(["promtool", "check", "metrics"], stdin=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_node_exporter_serves_the_textfile(tmp_path: Path) -> None:
    written = prometheus_file(tmp_path).read_text()
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={tmp_path}",
        f"--web.listen-address={address}",
    ]
    with serving(command, f"http://{address}/"):
        served = fetch(f"http://{address}/metrics")
    assert "node_textfile_scrape_error 0" in served
    ours, theirs = values_of(written), values_of(served)
    assert sum(map(len, ours.values())) > 40
    assert theirs == ours
    assert ours["gpusnap_adapter_memory_used_bytes"] == [16666066944]


def values_of(text: str) -> dict[str, list[float]]:
    """Name -> its values, sorted; node_exporter orders labels its own way."""
    found: dict[str, list[float]] = {}
    for name, value in re.findall(r"^(gpusnap_\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        found.setdefault(name, []).append(float(value))
    return {name: sorted(values) for name, values in found.items()}


def test_a_backfilled_recording_answers_as_a_direct_computation_does(tmp_path: Path) -> None:
    done = run_gpusnap("explain", str(RECORDING), "--format", "openmetrics")
    assert done.returncode == 0
    (tmp_path / "metrics.txt").write_bytes(done.stdout)
    blocks = tmp_path / "data"
    create = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "metrics.txt"), str(blocks)]
    subprocess.run(create, check=True, capture_output=True)
    (tmp_path / "prometheus.yml").write_text("scrape_configs: []\n")
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={blocks}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    documents = [json.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).splitlines()]
    used = [row["adapters"][0]["memory"]["used_bytes"] for row in documents]
    known = [value for value in used if value is not None]
    loads = [row["adapters"][0]["load"]["gpu_percent"] for row in documents]
    ollama = [row["processes"][0]["vram_bytes"] for row in documents]
    with serving(command, f"http://{address}/-/ready"):

        def ask(query: str) -> float:
            parameters = urllib.parse.urlencode({"query": query, "time": "2026-11-30T06:00:00Z"})
            answer: Any = json.loads(fetch(f"http://{address}/api/v1/query?{parameters}"))
            (result,) = answer["data"]["result"]
            return float(result["value"][1])

        metric = "gpusnap_adapter_memory_used_bytes[9h]"
        assert ask(f"max_over_time({metric})") == max(known)
        assert ask(f"min_over_time({metric})") == min(known)
        # Unknown samples are holes: 463 of 466, and nothing was filled in.
        assert ask(f"count_over_time({metric})") == len(known) == len(used) - 3
        assert ask("avg_over_time(gpusnap_adapter_load_percent[9h])") == pytest.approx(sum(loads) / len(loads))
        assert ask('max_over_time(gpusnap_program_memory_used_bytes{program="ollama"}[9h])') == max(ollama)
        assert (
            ask('sum_over_time(gpusnap_unmeasured{field="adapter.memory.used_bytes",reason="device-busy"}[9h])')
            == 3
        )
        assert ask("count(gpusnap_adapter_info)") == 1


def test_the_alert_rules_fire_when_they_should(tmp_path: Path) -> None:
    check = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, check=False)
    assert check.returncode == 0, check.stderr.decode() + check.stdout.decode()
    text = (Path(__file__).parent / "alerts_test.yml").read_text().replace("RULES", "alerts.yml")
    (tmp_path / "test.yml").write_text(text)
    shutil.copy(ALERTS, tmp_path / "alerts.yml")
    run = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yml")], capture_output=True, check=False
    )
    assert run.returncode == 0, run.stdout.decode() + run.stderr.decode()
