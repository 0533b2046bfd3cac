"""One append: whole or not at all, on a file that is ours."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import resource
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.record.writer import MAGIC, NotARecording, RecordFile, WriteFailed, is_ours

LINE = MAGIC + b'1","version":"0"}'


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_lines_are_appended_each_with_its_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = RecordFile(str(path))
    assert sink.append(LINE) == len(LINE) + 1
    assert sink.append(LINE) == len(LINE) + 1
    assert path.read_bytes() == LINE + b"\n" + LINE + b"\n"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o640), (0o077, 0o600), (0o000, 0o640)])
def test_a_new_file_is_0640_less_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    old = os.umask(umask)
    try:
        RecordFile(str(tmp_path / "a.jsonl")).append(LINE)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == mode


def test_report_119_a_torn_tail_is_healed_by_a_newline_and_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE + b"\n" + LINE[:40])
    RecordFile(str(path)).append(LINE)
    assert lines_of(path) == [LINE + b"\n", LINE[:40] + b"\n", LINE + b"\n"]


def test_a_tail_of_zeros_from_a_power_cut_is_healed_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE + b"\n" + b"\0" * 100)
    RecordFile(str(path)).append(LINE)
    assert lines_of(path)[-1] == LINE + b"\n"


@given(tail=st.binary(max_size=40))
@settings(max_examples=60, deadline=None)
def test_after_any_tail_the_next_line_stands_whole_and_nothing_is_deleted(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("tail") / "a.jsonl"
    before = LINE + b"\n" + tail
    path.write_bytes(before)
    RecordFile(str(path), fsync=False).append(LINE)
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.endswith(b"\n" + LINE + b"\n")


@pytest.mark.parametrize("cut", [1, 9, len(MAGIC) - 1, len(MAGIC), len(LINE)])
def test_a_file_that_only_holds_the_torn_beginning_of_a_line_is_ours(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE[:cut])
    sink = RecordFile(str(path))
    sink.append(LINE)
    sink.append(LINE)  # the healed beginning is ours still
    assert lines_of(path) == [LINE[:cut] + b"\n", LINE + b"\n", LINE + b"\n"]


FOREIGN = [
    b"hello\n",
    b"\n",
    b"{\n",
    b'{\n  "schema": "gpusnap.snapshot/1"\n}\n',
    b'{"schema":"gpusnap.diff/1"}\n',
    b'{"schema": "gpusnap.snapshot/1"}\n',
    b'{"a":1}\n{"schema":"gpusnap.snapshot/1"}\n',
    b"\x1f\x8b\x08\x00",
    b"(\xb5/\xfd",
    b"\0\0\0\0",
    b'{"sche\nhello\n',
    b" ",
]


@pytest.mark.parametrize("content", FOREIGN)
def test_somebody_elses_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    before = path.stat()
    sink = RecordFile(str(path))
    with pytest.raises(NotARecording, match=r"notes\.txt: not a gpusnap recording, left alone"):
        sink.check()
    with pytest.raises(NotARecording):
        sink.append(LINE)
    after = path.stat()
    assert path.read_bytes() == content
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)


def test_every_torn_beginning_of_a_line_is_ours_and_no_other_first_bytes_are() -> None:
    assert all(is_ours(LINE[:cut]) for cut in range(len(LINE)))
    assert not any(is_ours(bytes([first])) for first in range(256) if first != ord("{"))


@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_what_is_no_regular_file_is_refused_without_waiting_for_a_reader(tmp_path: Path, kind: str) -> None:
    path = {"folder": str(tmp_path), "fifo": str(tmp_path / "fifo"), "device": "/dev/null"}[kind]
    if kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(NotARecording, match=r"not a regular file|Is a directory"):
        RecordFile(path).check()


@pytest.mark.parametrize("path", ["gone/a.jsonl", "file/a.jsonl", "x" * 300])
def test_a_path_that_can_never_be_written_is_refused_before_the_first_sample(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotARecording, match=r"no folder|Not a directory|name too long"):
        RecordFile(str(tmp_path / path)).check()


def test_a_new_path_passes_the_check_and_is_not_created_by_it(tmp_path: Path) -> None:
    RecordFile(str(tmp_path / "new.jsonl")).check()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanishes_is_a_failed_write_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    sink = RecordFile(str(folder / "a.jsonl"))
    sink.append(LINE)
    (folder / "a.jsonl").unlink()
    folder.rmdir()
    with pytest.raises(WriteFailed, match=rf"there is no folder {folder}"):
        sink.append(LINE)


def test_a_line_that_does_not_fit_is_taken_back_and_the_torn_tail_stays_as_it_was(tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes the kernel take a part of the write and refuse the rest, as a disk that fills does."""
    path = tmp_path / "a.jsonl"
    before = LINE + b"\n" + LINE[:10]
    path.write_bytes(before)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
    try:
        with pytest.raises(WriteFailed, match=r"a\.jsonl: File too large"):
            RecordFile(str(path)).append(LINE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    RecordFile(str(path)).append(LINE)
    assert path.read_bytes() == before + b"\n" + LINE + b"\n"


def test_a_failed_fsync_is_a_sample_that_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE + b"\n")

    def fsync(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WriteFailed, match="Input/output error"):
        RecordFile(str(path)).append(LINE)
    assert path.read_bytes() == LINE + b"\n"


def test_without_fsync_none_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    RecordFile(str(tmp_path / "a.jsonl"), fsync=False).append(LINE)
    assert synced == []
    RecordFile(str(tmp_path / "b.jsonl")).append(LINE)
    assert len(synced) == 2  # the new file, and the folder that now names it
    RecordFile(str(tmp_path / "b.jsonl")).append(LINE)
    assert len(synced) == 3


def test_what_another_program_appended_without_the_lock_is_never_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE + b"\n")

    def fsync(_: int) -> None:
        with path.open("ab") as other:
            other.write(b"theirs\n")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WriteFailed):
        RecordFile(str(path)).append(LINE)
    assert path.read_bytes() == LINE + b"\n" + LINE + b"\ntheirs\n"


def test_a_held_lock_is_waited_for_within_bounds_and_the_file_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE + b"\n")
    waits: list[float] = []
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(WriteFailed, match=r"a\.jsonl: locked by another program for 2 s"):
            RecordFile(str(path), lock_wait=2.0, sleep=waits.append).append(LINE)
    assert 2.0 <= sum(waits) < 2.1
    assert path.read_bytes() == LINE + b"\n"
    RecordFile(str(path)).append(LINE)
    assert path.read_bytes() == 2 * (LINE + b"\n")


def test_a_lock_that_is_let_go_in_time_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    held = path.open("ab")
    fcntl.flock(held, fcntl.LOCK_EX)

    def let_go(_: float) -> None:
        held.close()

    RecordFile(str(path), sleep=let_go).append(LINE)
    assert path.read_bytes() == LINE + b"\n"


def test_a_rotation_while_waiting_for_the_lock_is_followed_to_the_new_file(tmp_path: Path) -> None:
    path, rotated = tmp_path / "a.jsonl", tmp_path / "a.jsonl.1"
    path.write_bytes(LINE + b"\n")
    held = path.open("ab")
    fcntl.flock(held, fcntl.LOCK_EX)

    def rotate(_: float) -> None:
        path.rename(rotated)  # logrotate's `create`
        path.write_bytes(b"")
        held.close()

    RecordFile(str(path), sleep=rotate).append(LINE)
    assert rotated.read_bytes() == LINE + b"\n"
    assert path.read_bytes() == LINE + b"\n"


def test_each_append_goes_to_the_file_that_bears_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = RecordFile(str(path))
    sink.append(LINE)
    path.rename(tmp_path / "a.jsonl.1")
    sink.append(LINE)
    assert path.read_bytes() == LINE + b"\n"
    assert (tmp_path / "a.jsonl.1").read_bytes() == LINE + b"\n"


def _write_many(path: str, writer: int, count: int) -> None:
    sink = RecordFile(path, fsync=False)
    for number in range(count):
        sink.append(MAGIC + json.dumps({"w": writer, "n": number, "pad": "x" * 6000}).encode())


def test_four_writers_lose_and_merge_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(str(path), number, 50)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    found = [json.loads(line.removeprefix(MAGIC)) for line in lines_of(path)]
    for writer_number in range(4):
        assert [row["n"] for row in found if row["w"] == writer_number] == list(range(50))
    assert len(found) == 200
