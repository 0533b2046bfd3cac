"""Prometheus' text: names, absent samples for nulls, the counts of what is missing, capped series by process."""

from __future__ import annotations

import re

from gpusnap.render.metrics import FAMILIES
from gpusnap.render.openmetrics import LeftOut, openmetrics
from gpusnap.render.prometheus import exposed, prometheus_text
from tests.builders import GIB, START, adapter, backend, process, snapshot


def lines(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith((name + "{", name + " "))]


def test_a_figure_stands_in_base_units_and_a_null_is_absent_and_counted() -> None:
    card = adapter(used=9 * GIB, busy="null:not-supported", leaves={"temperature.gpu_celsius": 61})
    text = prometheus_text(snapshot([card], [process(7, 8 * GIB, user="bob", name="ollama")]))
    assert lines(text, "gpusnap_adapter_memory_used_bytes") == [
        f'gpusnap_adapter_memory_used_bytes{{adapter="{card["id"]}"}} 9663676416'
    ]
    assert lines(text, "gpusnap_adapter_temperature_celsius")[0].endswith(" 61")
    assert lines(text, "gpusnap_adapter_load_percent") == []
    assert 'gpusnap_unmeasured{field="adapter.load.gpu_percent",reason="not-supported"} 1' in text
    assert lines(text, "gpusnap_program_memory_used_bytes") == [
        f'gpusnap_program_memory_used_bytes{{adapter="{card["id"]}",program="ollama",user="bob",'
        'category="ai"} 8589934592'
    ]
    assert lines(text, "gpusnap_snapshot_timestamp_seconds") == ["gpusnap_snapshot_timestamp_seconds 1796040000.0"]


def test_a_measured_zero_is_a_sample() -> None:
    text = prometheus_text(snapshot([adapter(used=0, busy=0)], []))
    assert lines(text, "gpusnap_adapter_memory_used_bytes")[0].endswith(" 0")
    assert lines(text, "gpusnap_adapter_load_percent")[0].endswith(" 0")


def test_there_is_no_timestamp_since_node_exporter_refuses_the_file() -> None:
    text = prometheus_text(snapshot([adapter(used=GIB)], [process(1)]), per_pid=True)
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r"[a-z_]+(\{.*\})? \S+", line), line


def test_processes_are_opt_in_and_capped_with_a_count_of_what_is_left_out() -> None:
    document = snapshot([adapter(used=GIB)], [process(pid, pid * 1000) for pid in range(1, 31)])
    assert lines(prometheus_text(document), "gpusnap_process_memory_used_bytes") == []
    text = prometheus_text(document, per_pid=True, most_pids=10)
    shown = lines(text, "gpusnap_process_memory_used_bytes")
    assert len(shown) == 10
    assert all(int(line.rsplit(" ", 1)[1]) > 20_000 for line in shown)
    assert lines(text, "gpusnap_processes_truncated") == ["gpusnap_processes_truncated 20"]


def test_a_program_with_unmeasured_processes_sums_the_measured_ones_and_counts_all() -> None:
    rows = [process(1, GIB), process(2, "null:no-permission"), process(3, "null:wddm", name="other")]
    text = prometheus_text(snapshot([adapter(used=2 * GIB)], rows))
    assert [line.rsplit(" ", 1)[1] for line in lines(text, "gpusnap_program_memory_used_bytes")] == [str(GIB)]
    assert sorted(line.rsplit(" ", 1)[1] for line in lines(text, "gpusnap_program_processes")) == ["1", "2"]
    assert 'gpusnap_unmeasured{field="process.vram_bytes",reason="wddm"} 1' in text


def test_label_values_are_escaped() -> None:
    row = process(1, GIB, name='a"b\\c', exe=None, cmdline=None)
    text = prometheus_text(snapshot([adapter(used=GIB)], [row]))
    assert 'program="a\\"b\\\\c"' in text


def test_a_failed_backend_is_down_and_an_absent_one_says_nothing() -> None:
    rows = [backend("nvml", "failed"), backend("drm"), backend("ascend", "absent")]
    text = prometheus_text(snapshot([], [], backends=rows))
    assert sorted(lines(text, "gpusnap_backend_up")) == [
        'gpusnap_backend_up{backend="drm"} 1',
        'gpusnap_backend_up{backend="nvml"} 0',
    ]


def test_names_follow_the_conventions() -> None:
    units = ("_bytes", "_percent", "_celsius", "_watts", "_seconds", "_joules_total", "_errors_total", "_info")
    counts = ("_processes", "_truncated", "_unmeasured", "_up", "_healthy")
    for family in FAMILIES.values():
        name = exposed(family)
        assert re.fullmatch(r"gpusnap_[a-z_]+", name)
        assert name.endswith(units + counts), name
        assert name.endswith("_total") is (family.kind == "counter"), name


def test_openmetrics_has_times_whole_series_and_an_end() -> None:
    documents = [
        snapshot([adapter(used=step * GIB if step != 2 else "null:timeout")], [], at=START + 10 * step)
        for step in range(5)
    ]
    text = b"".join(openmetrics(documents)).decode()
    assert text.endswith("# EOF\n")
    assert "# TYPE gpusnap_adapter info" in text
    used = lines(text, "gpusnap_adapter_memory_used_bytes")
    # The third sample is unknown: a hole, neither 0 nor the one before.
    assert [tuple(line.rsplit(" ", 2)[1:]) for line in used] == [
        (str(step * GIB), f"{START + 10 * step:.3f}") for step in (0, 1, 3, 4)
    ]
    names = [line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    groups = [name for position, name in enumerate(names) if position == 0 or names[position - 1] != name]
    assert len(groups) == len(set(groups)), "families are not interleaved"


def test_openmetrics_takes_no_moment_twice() -> None:
    documents = [snapshot([adapter(used=GIB)], [], at=START + offset) for offset in (0, 10, 5, 10, 20)]
    left_out = LeftOut()
    used = lines(b"".join(openmetrics(documents, left_out)).decode(), "gpusnap_adapter_memory_used_bytes")
    assert [float(line.rsplit(" ", 1)[1]) - START for line in used] == [0, 10, 20]
    assert left_out.samples == 2
    assert (left_out.message() or "").startswith("2 samples left out: not later than one before")
