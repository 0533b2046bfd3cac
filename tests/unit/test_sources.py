"""What the user typed, as snapshots: files, streams, lines of recordings; and recordings that were damaged."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import zstandard

from gpusnap.codec import dumps
from gpusnap.codec_read import DocumentError
from gpusnap.samples import Skips
from gpusnap.sources import iter_samples, load_pair, load_snapshot, split_argument
from tests.builders import GIB, START, adapter, process, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusnap.model import Snapshot


def sample(number: int) -> Snapshot:
    """Sample N of a recording that takes one a minute: N GiB used."""
    return snapshot([adapter(0, used=number * GIB)], [], at=START + 60 * (number - 1), uptime=1000 + 60.0 * number)


def line(number: int) -> bytes:
    return dumps(sample(number)) + b"\n"


def used(doc: Snapshot) -> int:
    """Which sample it is: its used GiB."""
    count = doc["adapters"][0]["memory"]["used_bytes"]
    assert count is not None
    return count // GIB


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recording(here: Path) -> str:
    (here / "rec.jsonl").write_bytes(b"".join(map(line, range(1, 6))))
    return "rec.jsonl"


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(DocumentError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_holds_one_document_compact_or_indented(here: Path) -> None:
    (here / "a.json").write_bytes(line(3))
    (here / "b.json").write_bytes(json.dumps(sample(4), indent=2).encode())
    assert used(load_snapshot("a.json").doc) == 3
    assert used(load_snapshot("b.json").doc) == 4
    assert load_snapshot("a.json").source == "a.json"


@pytest.mark.parametrize(
    ("selector", "number"),
    [
        ("first", 1),
        ("last", 5),
        ("1", 1),
        ("4", 4),
        ("-1", 5),
        ("-5", 1),
        ("2026-11-30T12:02:00Z", 3),
        ("2026-11-30T12:02:59.999Z", 3),
        ("2026-11-30T13:04+01:00", 5),
        ("2027-01-01", 5),
    ],
)
def test_a_line_of_a_recording_by_its_selector(recording: str, selector: str, number: int) -> None:
    loaded = load_snapshot(f"{recording}@{selector}")
    assert used(loaded.doc) == number
    assert loaded.source == f"rec.jsonl@{selector}"


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("6", "rec.jsonl@6: the recording holds 5 whole samples"),
        ("-6", "rec.jsonl@-6: the recording holds 5 whole samples"),
        ("0", "rec.jsonl@0: samples are counted from 1"),
        ("-0", "rec.jsonl@-0: samples are counted from 1"),
        ("latest", "rec.jsonl@latest: not a sample of a recording, expected @first, @last, @12, @-3 or @2026"),
        ("", "rec.jsonl@: not a sample of a recording, expected"),
        ("2026-11-30T11:59Z", "no sample at or before that time, the first is of 2026-11-30T12:00:00.000Z"),
    ],
)
def test_a_selector_that_names_nothing_says_what_there_is(recording: str, selector: str, words: str) -> None:
    assert words in refused(lambda: load_snapshot(f"{recording}@{selector}"))


def test_a_recording_alone_must_say_which_sample(recording: str) -> None:
    message = refused(lambda: load_snapshot(recording))
    assert message.startswith("rec.jsonl: holds many samples, expected one: rec.jsonl@last")
    assert message == refused(lambda: load_pair(recording, recording))


def test_a_recording_alone_is_its_first_against_its_last(recording: str) -> None:
    before, after = load_pair(recording, None)
    assert (used(before.doc), used(after.doc)) == (1, 5)
    assert (before.source, after.source) == ("rec.jsonl@first", "rec.jsonl@last")


def test_one_sample_is_nothing_to_compare(here: Path) -> None:
    (here / "a.json").write_bytes(line(1))
    assert "a.json: one snapshot, expected two" in refused(lambda: load_pair("a.json", None))
    assert "expected two, or a recording alone" in refused(lambda: load_pair("a.json@first", None))
    assert "expected two, or a recording alone" in refused(lambda: load_pair("live", None))


def test_an_existing_file_is_itself_whatever_its_name(here: Path) -> None:
    for name in ("a@last", "live", "-", "rec.jsonl@2"):
        (here / name).write_bytes(line(2))
        assert used(load_snapshot(name).doc) == 2
    assert split_argument("mail@example.jsonl@last") == ("mail@example.jsonl", "last")


def test_live_is_taken_by_the_callers_function(here: Path) -> None:
    loaded = load_snapshot("live", live=lambda: sample(7))
    assert (used(loaded.doc), loaded.source) == (7, "live")
    assert refused(lambda: load_snapshot("live")).startswith("live: ")


def test_standard_input_once_but_not_twice(here: Path, recording: str) -> None:
    assert used(load_snapshot("-", stdin=io.BytesIO(line(2))).doc) == 2
    assert used(load_snapshot("-@last", stdin=io.BytesIO(line(2) + line(3))).doc) == 3
    before, after = load_pair("-", f"{recording}@1", stdin=io.BytesIO(line(2)))
    assert (used(before.doc), used(after.doc)) == (2, 1)
    assert "standard input can't be both" in refused(lambda: load_pair("-", "-"))
    assert "standard input can't be both" in refused(lambda: load_pair("-@first", "-@last"))
    assert refused(lambda: load_snapshot("-", stdin=io.BytesIO(b""))) == (
        "standard input: empty, expected a gpusnap snapshot"
    )


def test_a_pipe_can_be_read_like_a_file(here: Path) -> None:
    """`gpusnap diff <(ssh host gpusnap snap) b.json`: no seeking, and the bytes come in pieces."""
    os.mkfifo("pipe")

    def write() -> None:
        with open("pipe", "wb", buffering=0) as stream:
            for byte in (line(2) + line(3)).partition(b'"version"'):
                stream.write(byte)

    writer = threading.Thread(target=write)
    writer.start()
    loaded = load_snapshot("pipe@last")
    writer.join()
    assert used(loaded.doc) == 3


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_compressed_by_content_not_by_name(here: Path, pack: Callable[[bytes], bytes]) -> None:
    (here / "a.json").write_bytes(pack(line(3)))
    # Log rotation appends whole frames to what is there.
    (here / "rec.old").write_bytes(pack(line(1) + line(2)) + pack(line(3)))
    assert used(load_snapshot("a.json").doc) == 3
    assert [used(item.doc) for item in iter_samples("rec.old")] == [1, 2, 3]
    assert used(load_snapshot("-@2", stdin=io.BytesIO(pack(line(1) + line(2)))).doc) == 2


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_recording_that_ends_early_keeps_its_whole_lines(
    here: Path, pack: Callable[[bytes], bytes]
) -> None:
    noise = b"".join(map(line, range(1, 40)))
    first = pack(line(1))
    (here / "rec.jsonl.x").write_bytes(first + pack(noise)[:-20])
    skips = Skips()
    numbers = [used(item.doc) for item in iter_samples("rec.jsonl.x", skips)]
    assert numbers[:1] == [1]
    assert numbers[1:] == list(range(1, len(numbers)))
    assert skips.count == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_damaged_compressed_data_is_an_error_not_a_traceback(here: Path, pack: Callable[[bytes], bytes]) -> None:
    data = bytearray(pack(b"".join(map(line, range(1, 9)))))
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    (here / "rec.jsonl").write_bytes(bytes(data))
    assert refused(lambda: list(iter_samples("rec.jsonl"))).startswith("rec.jsonl: ")


def test_report_119_a_torn_line_is_skipped_with_its_number_and_the_next_is_read(here: Path) -> None:
    """The recorder heals a torn tail by a newline; the record after it is whole and must not be lost."""
    (here / "rec.jsonl").write_bytes(line(1) + line(2)[:200] + b"\n" + line(3))
    skips = Skips()
    assert [(item.line_number, used(item.doc)) for item in iter_samples("rec.jsonl", skips)] == [(1, 1), (3, 3)]
    assert skips.message("rec.jsonl") == "rec.jsonl: skipped 1 line that is no whole sample (line 2)"
    # Numbers count whole samples.
    assert used(load_snapshot("rec.jsonl@2").doc) == 3


def test_a_torn_tail_is_not_the_last_sample(here: Path) -> None:
    (here / "rec.jsonl").write_bytes(line(1) + line(2) + line(3)[:-100])
    loaded = load_snapshot("rec.jsonl@last")
    assert used(loaded.doc) == 2
    assert (loaded.skips.count, loaded.skips.lines) == (1, [3])


def test_a_torn_first_line_does_not_hide_the_recording(here: Path) -> None:
    (here / "odd.name").write_bytes(line(1)[-300:] + line(2) + line(3))
    (here / "rec.jsonl").write_bytes(line(1)[-300:] + line(2) + line(3))
    (here / "head.log").write_bytes(line(1)[:300] + b"\n" + line(2) + line(3))
    assert [used(item.doc) for item in iter_samples("rec.jsonl")] == [2, 3]
    assert [used(item.doc) for item in iter_samples("head.log")] == [2, 3]
    # Nothing in the name or the first line says that this is a recording: an error rather than a guess.
    assert refused(lambda: list(iter_samples("odd.name"))).startswith("odd.name: line 1, column ")


def test_foreign_lines_are_skipped_and_counted(here: Path) -> None:
    foreign = b'{"query_time": 1, "gpus": []}\nmount: disk full\n\n[1, 2]\n"x"\n'
    (here / "rec.jsonl").write_bytes(line(1) + foreign + line(2))
    skips = Skips()
    assert [used(item.doc) for item in iter_samples("rec.jsonl", skips)] == [1, 2]
    # Line 4 is blank, which is no line at all.
    assert (skips.count, skips.lines) == (4, [2, 3, 5, 6])


def test_a_line_with_a_wrong_value_inside_is_skipped_when_all_are_read_and_an_error_when_chosen(
    here: Path,
) -> None:
    wrong = line(2).replace(b'"health":"ok"', b'"health":7')
    (here / "rec.jsonl").write_bytes(line(1) + wrong + line(3))
    skips = Skips()
    assert [used(item.doc) for item in iter_samples("rec.jsonl", skips)] == [1, 3]
    assert skips.lines == [2]
    assert refused(lambda: load_snapshot("rec.jsonl@2")) == (
        "rec.jsonl: line 2: adapters[0].health: expected str, got int"
    )


def test_strict_lines_refuse_a_torn_line_wherever_it_stands(here: Path) -> None:
    (here / "rec.jsonl").write_bytes(line(1) + line(2) + b"oops\n" + line(3))
    words = "rec.jsonl: line 3: torn or foreign, expected a whole gpusnap.snapshot/1"
    assert refused(lambda: list(iter_samples("rec.jsonl", strict_lines=True))) == words
    assert refused(lambda: load_snapshot("rec.jsonl@first", strict_lines=True)) == words
    assert refused(lambda: load_pair("rec.jsonl", None, strict_lines=True)) == words
    wrong = line(2).replace(b'"health":"ok"', b'"health":7')
    (here / "wrong.jsonl").write_bytes(line(1) + wrong)
    assert "adapters[0].health" in refused(lambda: list(iter_samples("wrong.jsonl", strict_lines=True)))


def test_a_newer_major_version_is_never_skipped(here: Path) -> None:
    newer = line(2).replace(b"gpusnap.snapshot/1", b"gpusnap.snapshot/2")
    (here / "rec.jsonl").write_bytes(line(1) + newer + line(3))
    assert refused(lambda: list(iter_samples("rec.jsonl"))).startswith(
        "rec.jsonl: line 2: gpusnap.snapshot/2 is newer"
    )


def test_a_recording_without_one_whole_sample(here: Path) -> None:
    (here / "rec.jsonl").write_bytes(line(1)[:50] + b"\nx\n")
    assert refused(lambda: load_snapshot("rec.jsonl@last")) == (
        "rec.jsonl: no whole sample in 2 lines, expected gpusnap.snapshot/1"
    )


def test_what_stands_in_the_way_of_a_file_is_said(here: Path) -> None:
    (here / "folder").mkdir()
    assert refused(lambda: load_snapshot("none.json")) == "none.json: no such file"
    assert refused(lambda: load_snapshot("none.jsonl@last")) == "none.jsonl: no such file"
    assert refused(lambda: load_snapshot("folder")) == "folder: is a directory"
    assert refused(lambda: load_snapshot("nul\0byte")) == "nul\\x00byte: no such file"
    assert refused(lambda: load_snapshot("a\nb\x1b[31m")) == "a\\x0ab\\x1b[31m: no such file"


def test_many_skipped_lines_are_counted_but_not_all_named(here: Path) -> None:
    (here / "rec.jsonl").write_bytes(line(1) + b"x\n" * 1000)
    skips = load_snapshot("rec.jsonl@last").skips
    message = skips.message("rec.jsonl")
    assert message is not None
    assert message.startswith("rec.jsonl: skipped 1000 lines that are no whole samples (lines 2, 3, 4,")
    assert message.endswith("21, …)")


def test_a_long_recording_is_streamed_not_loaded(here: Path) -> None:
    one = snapshot([adapter(0, used=GIB)], [process(pid) for pid in range(200)])
    data = dumps(one) + b"\n"
    with open("rec.jsonl", "wb") as stream:
        for _ in range(150):
            stream.write(data)
    load_snapshot("rec.jsonl@first")
    tracemalloc.start()
    load_snapshot("rec.jsonl@last")
    assert sum(1 for _ in iter_samples("rec.jsonl")) == 150
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) * 150 > 20_000_000
    assert peak < 12 * len(data)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_one_document_whose_packing_is_torn_says_so(here: Path, pack: Callable[[bytes], bytes]) -> None:
    (here / "a.json.x").write_bytes(pack(line(3))[:-20])
    assert refused(lambda: load_snapshot("a.json.x")) == (
        "a.json.x: the compressed data ends too early, before its first line does"
    )


def test_a_stream_that_fails_at_its_first_byte_is_one_line(here: Path) -> None:
    assert here.exists()
    assert refused(lambda: load_snapshot("/proc/self/mem")) == "/proc/self/mem: input/output error"


@pytest.mark.parametrize("text", [b"y\n", b"[\n", b"2026-11-30 10:00:00 up\n"])
def test_a_long_text_of_many_lines_is_refused_by_its_beginning(here: Path, text: bytes) -> None:
    """Lines of two bytes took 50 bytes each: a log of 256 MiB took 7 GB and a minute and a half."""
    data = text * ((16 << 20) // len(text))
    (here / "app.log").write_bytes(data)
    tracemalloc.start()
    words = refused(lambda: load_snapshot("app.log"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert words.startswith("app.log: ")
    assert peak < 4 << 20


def test_a_decompression_bomb_is_bounded(here: Path) -> None:
    """64 KiB of zstd that stand for 300 MiB of blanks without a newline: cut as one line, never kept."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    with open("bomb.jsonl", "wb") as stream:
        stream.write(packer.compress(line(1)))
        for _ in range(300):
            stream.write(packer.compress(b"{" * (1 << 20)))
        stream.write(packer.compress(b"\n" + line(2)) + packer.flush())
    assert os.path.getsize("bomb.jsonl") < 100_000
    skips = Skips()
    assert [used(item.doc) for item in iter_samples("bomb.jsonl", skips)] == [1, 2]
    assert skips.lines == [2]
