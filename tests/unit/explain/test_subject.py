"""What `explain WHAT` means, and which words end with exit code 2."""

from __future__ import annotations

import pytest

from gpusnap.explain.subject import Chosen, NoSuchSubject, choose, parse
from tests.builders import GIB, adapter, process, snapshot

DOCUMENT = snapshot(
    [adapter(0, used=8 * GIB), adapter(1, used=GIB, model="NVIDIA RTX A2000")],
    [process(1, GIB, on=1), process(4711, 8 * GIB)],
)
FIRST, SECOND = (f"GPU-0000000{index}-0000-4000-8000-000000000000" for index in (0, 1))


def meant(what: str | None) -> Chosen:
    return choose(parse(what, lambda _: False), DOCUMENT)


@pytest.mark.parametrize(
    ("what", "adapter_id"),
    [
        ("gpu:0", FIRST),
        ("0", FIRST),
        ("gpu:1", SECOND),
        ("GPU-00000001", SECOND),
        ("0000:02:00.0", SECOND),
        ("gpu:02:00.0", SECOND),
        ("gpu:4080 super", FIRST),
        ("a2000", SECOND),
    ],
)
def test_an_adapter(what: str, adapter_id: str) -> None:
    assert meant(what) == Chosen("adapter", adapter=adapter_id)


@pytest.mark.parametrize(("what", "pid"), [("pid:4711", 4711), ("4711", 4711), ("pid:1", 1)])
def test_a_process(what: str, pid: int) -> None:
    assert meant(what) == Chosen("process", pid=pid)


def test_nothing_said_is_this_machine() -> None:
    assert meant(None) == Chosen("host")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("1", "1 is a process and an adapter: say pid:1 or gpu:1"),
        ("77", "no process and no adapter 77: say pid:N or gpu:N; known: GPU 0 NVIDIA GeForce RTX 4080 SUPER"),
        ("pid:77", "no process 77 in this snapshot: it holds no GPU that is seen"),
        ("gpu:7", "no adapter '7'"),
        ("radeon", "no adapter 'radeon'"),
        ("pyth", "no adapter 'pyth'; known: "),
        ("pyth", "; a process is meant by its pid: pid:1 (python), pid:4711 (python)"),
        ("a.json", "; nor is there such a file"),
        ("nvidia", "'nvidia' fits 2 adapters: say one of gpu:GPU-00000000"),
        ("pid:x", "expected a number, as in pid:4711"),
        ("gpu:", "nothing stands behind the colon"),
    ],
)
def test_no_match_or_several_is_an_error_in_one_line(what: str, said: str) -> None:
    with pytest.raises(NoSuchSubject, match=r"^[^\n]*$") as error:
        meant(what)
    assert said in str(error.value)


@pytest.mark.parametrize(("what", "exists"), [("file:x", False), ("7", True), ("a/b", False), ("gpu", True)])
def test_a_file_is_what_exists_or_has_a_slash(what: str, exists: bool) -> None:
    assert parse(what, lambda _: exists).kind == "file"


def test_a_list_that_failed_is_not_a_process_that_is_not_there() -> None:
    document = snapshot([adapter(listed="null:failed")], None)
    with pytest.raises(NoSuchSubject, match="processes could not be listed"):
        choose(parse("pid:5", lambda _: False), document)
