"""Strict reading: what is wrong, in which file, on which line, at which path, and what was expected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.codec import dumps
from gpusnap.codec_read import MAX_DOCUMENT_BYTES, DocumentError, Reader
from tests.builders import GIB, adapter, process, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.model import Snapshot


def document() -> Snapshot:
    return snapshot([adapter(0, used=9 * GIB)], [process(4711, 8 * GIB), process(12, "null:exited")])


def plain() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(dumps(document()))
    return loaded


def error_of(data: bytes, line: int | None = None) -> str:
    with pytest.raises(DocumentError) as caught:
        Reader("a.json").read(data, line)
    message = str(caught.value)
    assert "\n" not in message
    return message


def broken(change: Callable[[dict[str, Any]], object]) -> bytes:
    loaded = plain()
    change(loaded)
    return json.dumps(loaded).encode()


def test_what_was_written_is_read_back_to_the_letter() -> None:
    assert Reader("a.json").read(dumps(document())) == document()


def test_indentation_and_a_byte_order_mark_make_no_difference() -> None:
    indented = b"\xef\xbb\xbf" + json.dumps(plain(), indent=2).encode()
    assert Reader("a.json").read(indented) == document()


def test_unknown_keys_of_a_later_minor_version_are_accepted() -> None:
    loaded = plain()
    loaded["colour"] = {"deep": [1]}
    loaded["adapters"][0]["memory"]["future_bytes"] = 5
    loaded["processes"][0]["future"] = None
    assert Reader("a.json").read(json.dumps(loaded).encode()) == document()


def test_a_missing_schema_is_named_with_the_command_that_writes_one() -> None:
    assert error_of(b'{"a": 1}') == (
        'a.json: not a gpusnap document (line 1: key "schema" is missing); taken with `gpusnap snap > a.json`?'
    )


def test_a_newer_major_version_is_refused_by_name() -> None:
    message = (
        "a.json: gpusnap.snapshot/2 is newer than what this gpusnap reads (gpusnap.snapshot/1); update gpusnap"
    )
    assert error_of(broken(lambda d: d.update(schema="gpusnap.snapshot/2"))) == message
    # Also where its rows no longer look like ours.
    assert error_of(b'{"schema": "gpusnap.snapshot/2", "cards": []}') == message


def test_another_gpusnap_document_is_not_a_snapshot() -> None:
    assert error_of(b'{"schema": "gpusnap.diff/1", "before": {}}') == (
        'a.json: schema is "gpusnap.diff/1", expected "gpusnap.snapshot/1"'
    )


@pytest.mark.parametrize("schema", ["gpusnap.snapshot/0", "gpusnap.snapshot/", "gpusnap.snapshot/x", "x" * 5000])
def test_a_schema_that_is_nothing_we_know(schema: str) -> None:
    message = error_of(broken(lambda d: d.update(schema=schema)))
    assert 'expected "gpusnap.snapshot/1"' in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["processes"][0].update(pid="x"), "processes[0].pid: expected int, got str"),
        (lambda d: d["processes"][1].pop("pid"), 'processes[1]: key "pid" is missing'),
        (
            lambda d: d["processes"][1].update(vram_bytes=1.5),
            "processes[1].vram_bytes: expected int or null, got float",
        ),
        (lambda d: d["processes"][0].update(self=1), "processes[0].self: expected bool, got int"),
        (lambda d: d["adapters"][0].update(vendor="sgi"), "adapters[0].vendor: invalid enum value 'sgi'"),
        (
            lambda d: d["adapters"][0]["memory"].pop("used_bytes"),
            'adapters[0].memory: key "used_bytes" is missing',
        ),
        (lambda d: d.update(adapters=None), "adapters: expected array, got null"),
        (lambda d: d["labels"].update(run=3), "labels[...]: expected str, got int"),
        *(
            (
                lambda d, n=number: d["processes"][1].update(vram_bytes=n),
                "processes[1].vram_bytes: expected a whole number within 2^53",
            )
            for number in (2**53 + 1, 2**70, -(2**53) - 1)
        ),
        (lambda d: d.update(taken_at="yesterday"), "taken_at: expected a time like 2026-11-30T10:00:00.000Z"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(change: Callable[[dict[str, Any]], object], words: str) -> None:
    data = broken(change)
    assert error_of(data, 7) == f"a.json: line 7: {words}"
    if "taken_at" not in words:
        assert error_of(data) == f"a.json: line 1: {words}"


def test_truncated_json_says_so_and_where() -> None:
    data = dumps(document())
    assert error_of(data[:500]) == "a.json: line 1: the JSON ends too early (truncated after 500 bytes)"
    # Line 4 of the indented form is "taken_at"; cut in the middle of it.
    indented = json.dumps(plain(), indent=2).encode()
    cut = indented[: indented.index(b"taken_at") + 4]
    assert error_of(cut) == f"a.json: line 4: the JSON ends too early (truncated after {len(cut)} bytes)"


def test_a_syntax_error_has_a_line_and_a_column() -> None:
    assert error_of(b'{\n  "schema": oops\n}').startswith("a.json: line 2, column 13: not JSON (")


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_not_json(token: str) -> None:
    data = dumps(document()).replace(b'"duration_seconds":0.031', f'"duration_seconds":{token}'.encode())
    assert "not JSON" in error_of(data)


def test_a_number_that_overflows_is_no_figure() -> None:
    data = dumps(document()).replace(b'"duration_seconds":0.031', b'"duration_seconds":1e999')
    assert error_of(data) == "a.json: line 1: duration_seconds: number out of range"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "binary data"),
        ('{"schema": 1}'.encode("utf-16"), "UTF-16 text"),
        (b'<?xml version="1.0" ?>\n<nvidia_smi_log>', "XML (nvidia-smi -q -x?)"),
        (b"Mon Nov 30 17:11\n+----\n| NVIDIA-SMI 580.95.05", "the table of nvidia-smi"),
    ],
)
def test_what_is_no_json_is_called_by_its_name(data: bytes, words: str) -> None:
    message = error_of(data)
    assert message.startswith(f"a.json: {words}")
    assert "expected a gpusnap snapshot" in message
    assert ("> a.json" in message) is (words != "binary data"), "nobody is told to write over a program"


@pytest.mark.parametrize(
    ("source", "hint"),
    [("a b.json", "`gpusnap snap > 'a b.json'`?"), ("standard input", "; taken with `gpusnap snap`?")],
)
def test_the_hint_is_a_command_that_a_shell_takes(source: str, hint: str) -> None:
    with pytest.raises(DocumentError) as error:
        Reader(source).read(b"{}", None)
    assert str(error.value).endswith(hint)


@pytest.mark.parametrize(
    ("data", "tool"),
    [
        # gpustat 1.1.1 --json, nvtop 3.2 -s, rocm-smi --showmeminfo vram --json
        (b'{"hostname": "h", "query_time": "2026-11-30", "gpus": [{"index": 0}]}', "gpustat --json"),
        (b'[{"device_name": "NVIDIA GeForce", "gpu_clock": "2200MHz"}]', "nvtop -s"),
        (b'{"card0": {"VRAM Total Memory (B)": "17163091968"}}', "rocm-smi --json"),
    ],
)
def test_other_tools_json_is_recognised(data: bytes, tool: str) -> None:
    message = error_of(data)
    assert message.startswith("a.json: not a gpusnap document (line 1: ")
    assert f"; looks like {tool})" in message


@pytest.mark.parametrize("data", [b"[]", b"null", b"5", b'"text"', b'{"schema": 5}', b'{"schema": "\\ud800"}'])
def test_json_that_is_no_object_of_ours(data: bytes) -> None:
    assert error_of(data).startswith("a.json: ")


def test_bytes_that_are_no_utf8_are_refused() -> None:
    assert "UTF-8" in error_of(b'{"schema":"\xff"}')


def test_a_nesting_bomb_is_one_line_not_a_crash() -> None:
    deep = b'{"schema":"gpusnap.snapshot/1","x":' + b"[" * 1_000_000
    assert error_of(deep) == "a.json: nested too deeply, no gpusnap document"
    assert Reader("a.json").head(deep) is None


def test_what_is_larger_than_any_snapshot_is_not_parsed() -> None:
    class Large(bytes):
        def __len__(self) -> int:
            return MAX_DOCUMENT_BYTES + 1

    assert error_of(Large(b"{}")) == "a.json: longer than 256 MiB, no snapshot"


def test_the_head_of_a_line_is_known_without_decoding_it() -> None:
    reader = Reader("rec.jsonl")
    line = dumps(document())
    head = reader.head(line)
    assert head is not None
    assert head.taken_at == "2026-11-30T12:00:00.000Z"
    assert reader.head(line[:-40]) is None
    assert reader.head(b'{"schema":"other/1","taken_at":""}') is None
    with pytest.raises(DocumentError, match=r"rec.jsonl: line 3: gpusnap.snapshot/2 is newer"):
        reader.head(b'{"schema":"gpusnap.snapshot/2","taken_at":""}', 3)


@given(st.binary(max_size=200))
def test_no_bytes_at_all_crash_the_reader(data: bytes) -> None:
    with pytest.raises(DocumentError):
        Reader("a.json").read(data)


@given(st.integers(0, 4000), st.integers(0, 255))
def test_a_flipped_byte_is_read_or_refused_with_one_line(position: int, value: int) -> None:
    data = bytearray(dumps(document()))
    data[position % len(data)] = value
    message = ""
    try:
        Reader("a.json").read(bytes(data))
    except DocumentError as error:
        message = str(error)
    assert message == "" or (message.startswith("a.json: ") and "\n" not in message)


@pytest.mark.parametrize("index", [-1, 3, 99])
def test_an_index_that_names_no_entry_gives_no_figure_anothers_source(index: int) -> None:
    for rows in ("adapters", "processes"):
        words = error_of(broken(lambda doc, rows=rows: doc[rows][0].update(provenance=index)))  # type: ignore[misc]
        assert words.startswith(f"a.json: {rows}[0].provenance: expected an index into the ")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z"])
def test_a_time_that_is_none_is_named_by_its_path(text: str) -> None:
    words = error_of(broken(lambda doc: doc["processes"][0].update(started_at=text)))
    assert words == "a.json: processes[0].started_at: expected a time like 2026-11-30T10:00:00.000Z"


@pytest.mark.parametrize("seconds", [-1, 1e300])
def test_an_uptime_that_no_machine_reaches_is_refused(seconds: float) -> None:
    words = error_of(broken(lambda doc: doc.update(uptime_seconds=seconds)))
    assert words == "a.json: uptime_seconds: expected seconds since boot"
    assert Reader("a.json").read(broken(lambda doc: doc.update(uptime_seconds=None)))["uptime_seconds"] is None


@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_somebody_sent_drives_no_terminal(ascii_only: bool) -> None:
    """Escaped in the JSON or raw, in a value or in a key; our own escapes stay as they are."""
    sent = plain()
    sent["labels"] = {"k\x1b": "v\x7f\u202e"}
    sent["processes"][0]["name"] = "a\x1b[31m\nb"
    sent["processes"][0]["cmdline"] = ["c\\x1bd", "é✓", "\u0085"]
    read = Reader("a.json").read(json.dumps(sent, ensure_ascii=ascii_only).encode())
    assert read["labels"] == {"k\\x1b": "v\\x7f\\u202e"}
    row = (read["processes"] or [])[0]
    assert row["name"] == "a\\x1b[31m\\x0ab"
    assert row["cmdline"] == ["c\\x1bd", "é✓", "\\x85"]
