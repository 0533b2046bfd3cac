"""Write the JSON Schema files from `model.py`: `python -m gpusnap.schema.generate`.

What the types can't say is added here: the constant in `schema`, the form of a time and of a provenance.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gpusnap import model
from gpusnap.reading import KINDS, REASONS
from gpusnap.schema import path

DOCUMENTS: dict[str, tuple[str, object]] = {
    "snapshot": (model.SNAPSHOT_SCHEMA, model.Snapshot),
    "diff": (model.DIFF_SCHEMA, model.Diff),
    "explanation": (model.EXPLANATION_SCHEMA, model.Explanation),
    "summary": (model.SUMMARY_SCHEMA, model.Summary),
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
PROVENANCE = f"^((?:{'|'.join(KINDS)}):.+|null:(?:{'|'.join(sorted(REASONS))})(?: .*)?)$"
# Leaves by their name, wherever they stand.
_TIMES = ("taken_at", "started_at", "peak_at", "since")
_PROVENANCES = ("before_provenance", "after_provenance")


def generate(name: str) -> str:
    """The schema of one document as the text of its file."""
    constant, document = DOCUMENTS[name]
    schema = msgspec.json.schema(document)
    definitions = schema["$defs"]
    for row_type, definition in definitions.items():
        _in_order_of(row_type, definition)
        _tighten(definition)
    root = definitions.pop(schema["$ref"].rpartition("/")[2])
    root["properties"]["schema"] = {"const": constant}
    whole = {"$schema": DIALECT, "title": constant, **root, "$defs": definitions}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _in_order_of(row_type: str, definition: dict[str, Any]) -> None:
    """Keys in the order of the contract; msgspec sorts them by name."""
    order = list(getattr(model, row_type).__annotations__)
    definition["properties"] = {name: definition["properties"][name] for name in order}
    definition["required"] = [name for name in order if name in definition["required"]]


def _tighten(definition: dict[str, Any]) -> None:
    definition.pop("title", None)
    properties = definition["properties"]
    for name, leaf in properties.items():
        for option in leaf.get("anyOf", [leaf]):
            if option.get("type") == "string" and name in _TIMES:
                option["pattern"] = TIME
            elif option.get("type") == "string" and name in _PROVENANCES:
                option["pattern"] = PROVENANCE
    if "schema" in properties and "provenance" in properties:
        properties["provenance"]["items"]["additionalProperties"] = {"type": "string", "pattern": PROVENANCE}


def main() -> None:
    for name in DOCUMENTS:
        with open(path(name), "w", encoding="utf-8", newline="\n") as stream:
            stream.write(generate(name))


if __name__ == "__main__":
    main()
