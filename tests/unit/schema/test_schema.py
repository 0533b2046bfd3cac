"""The shipped JSON Schema says what the types say, and an independent validator agrees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from gpusnap import schema
from gpusnap.codec import dumps
from gpusnap.schema.generate import DOCUMENTS, generate
from tests.builders import GIB, adapter, llm_facts, model_facts, process, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable


def validator(name: str) -> jsonschema.Draft202012Validator:
    loaded = json.loads(schema.text(name))
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def document() -> dict[str, Any]:
    row = process(4711, 8 * GIB, model=model_facts(name="Qwen3-14B"), llm=llm_facts(server="llama.cpp"))
    card = adapter(
        0, used=9 * GIB, leaves={"memory.shared_used_bytes": "null:not-supported NVML_ERROR_NOT_SUPPORTED"}
    )
    loaded: dict[str, Any] = json.loads(dumps(snapshot([card], [row, process(12, "null:wddm")])))
    return loaded


@pytest.mark.parametrize("name", schema.NAMES)
def test_the_checked_in_file_is_what_the_types_generate(name: str) -> None:
    assert schema.text(name) == generate(name), "run `make golden`"


def test_every_document_has_a_schema() -> None:
    assert tuple(DOCUMENTS) == schema.NAMES
    with pytest.raises(ValueError, match="expected one of snapshot, diff"):
        schema.path("ps")


def test_a_complete_snapshot_is_valid() -> None:
    validator("snapshot").validate(document())


def test_unknown_keys_are_allowed_in_version_1() -> None:
    loaded = document()
    loaded["colour"] = 5
    loaded["adapters"][0]["memory"]["future_bytes"] = None
    validator("snapshot").validate(loaded)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema="gpusnap.snapshot/2"),
        lambda d: d.pop("labels"),
        lambda d: d["adapters"][0].pop("ecc"),
        lambda d: d["adapters"][0]["memory"].update(used_bytes="9 GiB"),
        lambda d: d["adapters"][0]["memory"].update(used_bytes=(1 << 64) - 1),
        lambda d: d["adapters"][0].update(processes_listed="yes"),
        lambda d: d["processes"][0].update(vram_bytes=1.5),
        lambda d: d["processes"][0].update(state="Z"),
        lambda d: d.update(taken_at="2026-11-30T12:00:00"),
        lambda d: d["provenance"][0].update({"memory.used_bytes": "guessed:by eye"}),
        lambda d: d["provenance"][0].update({"memory.used_bytes": "null:because"}),
        lambda d: d.update(adapters=None),
    ],
)
def test_a_document_that_breaks_a_rule_of_the_contract_is_invalid(
    change: Callable[[dict[str, Any]], object],
) -> None:
    loaded = document()
    change(loaded)
    assert not validator("snapshot").is_valid(loaded)


def test_an_empty_machine_is_valid() -> None:
    validator("snapshot").validate(json.loads(dumps(snapshot([], []))))
    validator("snapshot").validate(json.loads(dumps(snapshot([], None))))
