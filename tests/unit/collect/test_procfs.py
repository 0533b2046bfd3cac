"""Parsers of `/proc/PID`, held to lines copied from proc(5) and to this kernel's own files."""

from __future__ import annotations

import pytest

from gpusnap.collect.procfs import parse_boottime_offset, parse_passwd, parse_stat, parse_uid, split_words
from tests.unit.collect.machine import stat_line

# A line of a real machine (Linux 6.1, `cat /proc/1234/stat` of a bash), fields as proc(5) numbers them.
BASH = (
    b"1234 (bash) S 1200 1234 1234 34816 1300 4194304 3000 50000 3 40 12 7 80 30 20 0 1 0 98765 "
    b"8523776 1312 18446744073709551615 94 95 140 0 0 0 65536 3686404 1266761467 1 0 0 17 "
    b"1 0 0 0 0 0 1 2 3 4 5 6 0\n"
)


def test_a_stat_line_is_read_by_the_fields_of_proc_5() -> None:
    comm, state, ppid, flags, cpu_ticks, start, pages = parse_stat(BASH)
    assert (comm, state, ppid) == (b"bash", "S", 1200)
    assert flags == 4194304  # field 9
    assert cpu_ticks == 12 + 7  # fields 14 and 15
    assert start == 98765  # field 22
    assert pages == 1312  # field 24


@pytest.mark.parametrize("comm", ["a) R 1 (b", "(sd-pam)", "Web Content", ") ) )", "", "tmux: server"])
def test_fields_are_counted_after_the_last_parenthesis(comm: str) -> None:
    raw = stat_line(7, comm, state="D", ppid=42, start=31337, rss=5).encode()
    assert parse_stat(raw) == (comm.encode(), "D", 42, 0x00400000, 0, 31337, 5)


@pytest.mark.parametrize("length", range(len(BASH[: BASH.index(b"1312") + 5])))
def test_a_cut_stat_line_is_refused_wherever_it_is_cut(length: int) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_stat(BASH[:length])


@pytest.mark.parametrize("field", [4, 14, 15, 22, 24])
@pytest.mark.parametrize("number", [b"-5000000", b"9007199254740993", b"99999999999999999999999"])
def test_a_number_that_cannot_be_is_refused(field: int, number: bytes) -> None:
    fields = BASH.split(b" ")
    with pytest.raises(ValueError, match="cannot be"):
        parse_stat(b" ".join([*fields[: field - 1], number, *fields[field:]]))


def test_the_user_is_the_effective_uid() -> None:
    assert parse_uid(b"Name:\tsudo\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t1000\t0\t0\t0\n") == 0


@pytest.mark.parametrize(
    "raw",
    [b"", b"Name:\tx\n", b"Name:\tx\nUid:\t\n", b"Name:\tx\nUid:\t1000\tx\n", b"Name:\tx\nUid:\t0\t4294967296\n"],
)
def test_a_status_without_a_uid_is_refused(raw: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_uid(raw)


@pytest.mark.parametrize(
    ("raw", "offset"),
    [
        (b"monotonic           0         0\nboottime            0         0\n", (0, 0)),
        (b"monotonic      172800         0\nboottime       604800         0\n", (604800, 0)),
        (b"monotonic           0         0\nboottime          -60 500000000\n", (-60, 500000000)),
        (b"", (0, 0)),
    ],
)
def test_the_time_namespaces_offset_is_that_of_boottime(raw: bytes, offset: tuple[int, int]) -> None:
    assert parse_boottime_offset(raw) == offset


@pytest.mark.parametrize(
    ("blob", "exe", "words"),
    [
        (b"vllm\0serve\0--port\x008000\0", None, ["vllm", "serve", "--port", "8000"]),
        (b"sh\0-c\0\0last\0", None, ["sh", "-c", "", "last"]),
        (b"", None, []),
        (b"\0\0\0", None, []),
        # Titles written over argv: one text, padded or not.
        (b"VLLM::Worker_TP3\0\0\0\0\0\0\0", None, ["VLLM::Worker_TP3"]),
        (b"nginx: worker process", None, ["nginx:", "worker", "process"]),
        (b"/usr/lib/chromium/chromium --type=gpu-process --no-sandbox\0\0", None,
         ["/usr/lib/chromium/chromium", "--type=gpu-process", "--no-sandbox"]),
        # One word with a blank in it: the program's own path.
        (b"/opt/My Game/game.x86_64\0", "/opt/My Game/game.x86_64", ["/opt/My Game/game.x86_64"]),
        (b"/opt/My Game/game.x86_64\0", "/opt/My Game/game.x86_64 (deleted)", ["/opt/My Game/game.x86_64"]),
        (b"python\0/d\xc3\xff.py\0", None, ["python", "/d\udcc3\udcff.py"]),
    ],
)  # fmt: skip
def test_argv_is_split_as_the_program_left_it(blob: bytes, exe: str | None, words: list[str]) -> None:
    assert split_words(blob, exe) == words


def test_passwd_lines_give_names_by_uid() -> None:
    raw = (
        b"root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\ntoor:x:0:0::/:\n+::::::\nbad\n"
    )
    assert parse_passwd(raw) == {0: "root", 1000: "alice"}
