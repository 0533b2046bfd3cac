"""What the table keeps between samples, and what it reads anew."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpusnap.collect.processes import REFRESH_SAMPLES
from tests.unit.collect.machine import CONTAINER, INITIAL, host, no_question, process, stat_line, table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from gpusnap.captured import CapturedHost
    from gpusnap.collect.processes import ProcessTable


def sample(processes: ProcessTable, *pids: int) -> list[dict[str, object]]:
    processes.begin_sample()
    return [
        {leaf: reading.value for leaf, reading in processes.facts(pid, "driver", no_question).items()}
        for pid in pids
    ]


def stat(pid: int, comm: str = "python3", **fields: int) -> str:
    return f"--- proc/{pid}/stat\n{stat_line(pid, comm, **fields)}"  # type: ignore[arg-type]


def reads(machine: CapturedHost) -> Counter[str]:
    counted = Counter(path.rpartition("/")[2] for path in machine.opened)
    machine.opened.clear()
    return counted


def test_a_later_sample_reads_nothing_but_stat(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5))
    processes = table(machine)
    sample(processes, 5)
    machine.opened.clear()
    sample(processes, 5)
    assert machine.opened == ["proc/5/stat"]


def test_a_process_on_two_cards_is_read_once_a_sample(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5))
    processes = table(machine)
    sample(processes, 5)
    machine.opened.clear()
    first, second = sample(processes, 5, 5)
    assert machine.opened == ["proc/5/stat"]
    assert first == second


def test_state_parent_and_memory_are_of_this_sample(tmp_path: Path) -> None:
    later = stat(5, ppid=1, rss=3000) + "--- proc/6/stat gone\n"
    machine = host(tmp_path, INITIAL + process(5, ppid=44, rss=1000) + process(6), later)
    processes = table(machine)
    before = sample(processes, 5, 6)
    machine.sleep(1)
    after = sample(processes, 5, 6)
    assert (before[0]["ppid"], before[0]["rss_bytes"]) == (44, 4_096_000)
    assert (after[0]["ppid"], after[0]["rss_bytes"]) == (1, 12_288_000)
    assert (before[1]["name"], after[1]["name"]) == ("python3", None)


def test_a_process_that_sleeps_has_a_measured_0_and_wakes_to_its_share(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5, utime=100))
    (tmp_path / "tree.4.txt").write_text(stat(5, utime=150))
    processes = table(machine)
    shares = []
    for _ in range(4):
        shares.append(sample(processes, 5)[0]["cpu_percent"])
        machine.sleep(10)
    # Half a second of CPU time in the 10 s before the last sample, none in those before.
    assert shares == [None, 0.0, 0.0, 5.0]


def test_cpu_percent_is_the_cpu_time_between_two_samples(tmp_path: Path) -> None:
    machine = host(
        tmp_path,
        INITIAL + process(5, utime=100, stime=50) + process(6, utime=10),
        stat(5, utime=400, stime=100) + stat(6, utime=10),
    )
    processes = table(machine)
    assert [row["cpu_percent"] for row in sample(processes, 5, 6)] == [None, None]
    machine.sleep(2.5)
    # 350 ticks of 10 ms in 2.5 s: 140 % of one core; and none at all.
    assert [row["cpu_percent"] for row in sample(processes, 5, 6)] == [140.0, 0.0]


def test_prime_is_the_first_of_the_two_samples(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5, utime=100), stat(5, utime=110))
    processes = table(machine)
    processes.begin_sample()
    processes.prime([5, 77])
    machine.sleep(0.25)
    assert sample(processes, 5)[0]["cpu_percent"] == 40.0


def test_two_samples_at_one_moment_give_no_rate(tmp_path: Path) -> None:
    processes = table(host(tmp_path, INITIAL + process(5, utime=100)))
    sample(processes, 5)
    processes.begin_sample()
    assert processes.facts(5, "driver", no_question)["cpu_percent"].provenance == "null:needs-two-samples"


def test_cpu_time_that_falls_is_out_of_range(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5, utime=900), stat(5, utime=100))
    processes = table(machine)
    sample(processes, 5)
    machine.sleep(1)
    processes.begin_sample()
    cpu = processes.facts(5, "driver", no_question)["cpu_percent"]
    assert cpu.provenance.startswith("null:out-of-range")


def test_report_083_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    later = stat(5, "bash", start=900_000, utime=5) + "--- proc/5/cmdline escaped\nbash\\0\n"
    machine = host(tmp_path, INITIAL + process(5, "bash", start=1000, utime=800), later)
    processes = table(machine)
    sample(processes, 5)
    machine.sleep(1)
    (row,) = sample(processes, 5)
    assert (row["start_ticks"], row["cmdline"], row["cpu_percent"]) == (900_000, ["bash"], None)


def test_report_083_a_number_that_changes_hands_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = host(tmp_path, INITIAL + process(5, "old", start=1000, cmdline="old\\0"))
    (tmp_path / "tree.2.txt").write_text(process(5, "new", start=2000, cmdline="new\\0"))
    processes = table(machine)
    read = machine.proc.read_record

    def read_and_swap(path: str) -> bytes:
        data = read(path)
        if path == "5/stat" and b"(old)" in data:
            machine.sleep(0)  # between `stat` and `cmdline` the old one exits and the number is given again
        return data

    monkeypatch.setattr(machine.proc, "read_record", read_and_swap)
    (row,) = sample(processes, 5)
    assert (row["name"], row["start_ticks"], row["cmdline"]) == ("new", 2000, ["new"])


def test_execve_is_seen_by_the_changed_comm(tmp_path: Path) -> None:
    later = stat(5, "llama-server", utime=130) + "--- proc/5/cmdline escaped\nllama-server\\0-m\\0x\\0\n"
    machine = host(tmp_path, INITIAL + process(5, "sh", cmdline="sh\\0-c\\0", utime=100), later)
    processes = table(machine)
    sample(processes, 5)
    machine.sleep(1)
    (row,) = sample(processes, 5)
    assert (row["name"], row["cmdline"]) == ("llama-server", ["llama-server", "-m", "x"])
    assert row["cpu_percent"] == 30.0  # the same process still


def test_fixed_facts_are_read_again_every_60_samples(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5, utime=7))
    processes = table(machine)
    sample(processes, 5)
    machine.opened.clear()
    for _ in range(REFRESH_SAMPLES - 1):
        sample(processes, 5)
    assert reads(machine) == {"stat": 59}
    (tmp_path / "tree.2.txt").write_text("--- proc/5/cmdline escaped\npython3\\0eval.py\\0\n")
    machine.sleep(1)
    (row,) = sample(processes, 5)
    assert reads(machine)["cmdline"] == 1
    assert (row["cmdline"], row["cpu_percent"]) == (["python3", "eval.py"], 0.0)


def test_a_process_that_a_sample_does_not_name_is_forgotten(tmp_path: Path) -> None:
    processes = table(host(tmp_path, INITIAL + process(5) + process(6)))
    sample(processes, 5, 6)
    sample(processes, 5)
    sample(processes, 5)
    assert processes.raw_words(5) == ["python3", "train.py"]
    assert processes.raw_words(6) == []


def test_what_a_process_holds_is_asked_once(tmp_path: Path) -> None:
    processes = table(host(tmp_path, CONTAINER + process(5) + process(6)))
    asked: list[int] = []

    def holds(pid: int) -> bool:
        asked.append(pid)
        return pid == 5

    for _ in range(3):
        processes.begin_sample()
        names = [processes.facts(pid, "driver", holds)["name"].value for pid in (5, 6)]
        assert names == ["python3", None]
    assert asked == [5, 6]


def test_the_start_time_for_people_does_not_wander_with_the_wall_clock(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(5))
    processes = table(machine)
    (before,) = sample(processes, 5)
    machine._wall += 3600  # NTP steps the clock
    processes._known.clear()
    (after,) = sample(processes, 5)
    assert before["started_at"] == after["started_at"]


def test_report_121_cmdline_none_keeps_the_program_only(tmp_path: Path) -> None:
    tree = INITIAL + process(5, cmdline="vllm\\0serve\\0--api-key\\0sk-AAAA\\0")
    processes = table(host(tmp_path, tree), cmdline="none")
    facts = processes.facts(5, "driver", no_question)
    assert facts["cmdline"].provenance == "null:not-requested"
    assert facts["name"].value == "python3"
    assert processes.raw_words(5) == ["vllm", "serve", "--api-key", "sk-AAAA"]


def test_report_103_the_document_gets_redacted_words_and_detection_the_raw_ones(tmp_path: Path) -> None:
    tree = INITIAL + process(5, cmdline="vllm\\0serve\\0--api-key\\0sk-AAAA\\0--hf-token=hf_BBBB\\0")
    processes = table(host(tmp_path, tree))
    shown = processes.facts(5, "driver", no_question)["cmdline"].value
    assert shown == ["vllm", "serve", "--api-key", "***", "--hf-token=***"]
    assert processes.raw_words(5)[-2:] == ["sk-AAAA", "--hf-token=hf_BBBB"]
    full = table(host(tmp_path, tree), cmdline="full").facts(5, "driver", no_question)["cmdline"].value
    assert full == ["vllm", "serve", "--api-key", "sk-AAAA", "--hf-token=hf_BBBB"]


def test_report_103_a_title_without_nuls_is_redacted_word_by_word(tmp_path: Path) -> None:
    tree = INITIAL + process(5, cmdline="vllm serve --api-key sk-AAAA --hf-token=hf_BBBB --port 8000")
    shown = table(host(tmp_path, tree)).facts(5, "driver", no_question)["cmdline"].value
    assert shown == ["vllm", "serve", "--api-key", "***", "--hf-token=***", "--port", "8000"]


def test_a_huge_command_line_is_cut_and_says_how_much(tmp_path: Path) -> None:
    long = "x" * 100_000
    tree = INITIAL + process(5, cmdline=f"a\\0{long}\\0") + process(6, cmdline="w\\0" * 5000)
    processes = table(host(tmp_path, tree))
    shown = processes.facts(5, "driver", no_question)["cmdline"].value
    assert isinstance(shown, list)
    assert shown == ["a", "x" * 4096 + "…+95904"]
    many = processes.facts(6, "driver", no_question)["cmdline"].value
    assert isinstance(many, list)
    assert (len(many), many[-1]) == (1025, "…+3976 words")
