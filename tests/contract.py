"""What the README promises of any snapshot document ("What a null means", "The document"), checked on one.

Written from those words alone; imports nothing of gpusnap but the JSON Schema that it ships.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any

import jsonschema

REASONS = {
    "none",
    "not-supported",
    "not-exposed",
    "no-permission",
    "other-pid-namespace",
    "exited",
    "device-lost",
    "device-suspended",
    "device-busy",
    "needs-two-samples",
    "not-requested",
    "not-probed",
    "unified-memory",
    "wddm",
    "wsl",
    "partitioned",
    "shared",
    "ambiguous",
    "out-of-range",
    "over-attributed",
    "contradiction",
    "unknown-format",
    "timeout",
    "failed",
}
KINDS = {"measured", "reported", "computed", "inferred", "estimated", "null"}
FREE_OF_PROVENANCE = {"pid", "ppid", "uid", "index", "start_ticks", "unreadable_pids"}
PLAIN = {
    "id",
    "adapter",
    "pid_namespace",
    "self",
    "category",
    "vendor",
    "health",
    "power_state",
    "provenance",
}
FIGURE_ENDINGS = (
    "_bytes",
    "_percent",
    "_celsius",
    "_watts",
    "_joules",
    "_mhz",
    "_seconds",
    "_bytes_per_second",
    "_tokens",
)
SENTINELS = {2**32 - 1, 2**63 - 1, 2**64 - 1, 2147483632}
SCHEMA = json.loads(files("gpusnap.schema").joinpath("snapshot.json").read_bytes())
# jsonschema.validate() would check the schema itself at each call.
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def check_contract(document: dict[str, Any], *, shape: bool = True) -> None:
    """Raises AssertionError that names the path of what breaks the contract.

    `shape`: against the JSON Schema too, which costs ten times the rest.
    """
    if shape:
        VALIDATOR.validate(document)
    _check_numbers(document, "")
    adapters = {row["id"]: row for row in document["adapters"]}
    assert len(adapters) == len(document["adapters"]), "adapter ids are unique"
    for row in document["adapters"]:
        _check_row(document, row, f"adapters[{row['id']}]")
        _check_listing(document, row)
    for row in document["processes"] or ():
        assert row["adapter"] in adapters
        _check_row(document, row, f"processes[{row['pid']}]")
        if row["cmdline"] is None or row["name"] is None:
            assert row["provenance"] is not None
    for row in document["adapters"]:
        _check_accounting(document, row)


def _check_numbers(value: Any, path: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, f"{path}.{key}")
            if path.startswith(".provenance"):
                continue
            if key.endswith("_bytes") and item is not None:
                assert isinstance(item, int), f"{path}.{key} is an integer"
            if key.endswith("_percent") and key != "cpu_percent" and isinstance(item, int | float):
                assert 0 <= item <= 100, f"{path}.{key} = {item}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_numbers(item, f"{path}[{number}]")
    elif isinstance(value, float):
        assert math.isfinite(value), path
    elif isinstance(value, int) and not isinstance(value, bool):
        assert abs(value) <= 2**53, path
        assert value not in SENTINELS, path
    elif isinstance(value, str):
        value.encode("utf-8")
        assert value.isprintable(), f"{path}: {value!r}"


def leaves(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted leaves of a row; a null group is a leaf, so is a list."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and path != "partition":
            found |= leaves(value, path + ".")
        else:
            found[path] = value
    return found


def _check_row(document: dict[str, Any], row: dict[str, Any], where: str) -> None:
    sources = document["provenance"][row["provenance"]]
    for leaf, value in leaves(row).items():
        name = leaf.rpartition(".")[2]
        source = sources.get(leaf)
        if name in FREE_OF_PROVENANCE or leaf in PLAIN or leaf.startswith("partition."):
            continue
        if value is None:
            assert source is not None, f"{where}.{leaf}: null without an entry"
            assert source.startswith("null:"), f"{where}.{leaf}: null, but {source}"
        elif _is_figure(value):
            assert source is not None, f"{where}.{leaf}: a figure without provenance"
            assert not source.startswith("null:"), f"{where}.{leaf}: {value}, but {source}"
    for leaf, source in sources.items():
        kind, _, words = source.partition(":")
        assert kind in KINDS, f"{where}.{leaf}: {source}"
        assert words, f"{where}.{leaf}: {source}"
        if kind == "null":
            assert words.split(" ")[0] in REASONS, f"{where}.{leaf}: {source}"


def _is_figure(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _check_listing(document: dict[str, Any], row: dict[str, Any]) -> None:
    entry = document["provenance"][row["provenance"]].get("processes_listed")
    if row["processes_listed"] == "unavailable":
        assert entry is not None
        assert entry.startswith("null:")
        assert row["accounting"]["attributed_bytes"] is None
    else:
        assert entry is None


def _check_accounting(document: dict[str, Any], row: dict[str, Any]) -> None:
    books = row["accounting"]
    children = [other for other in document["adapters"] if other["parent"] == row["id"]]
    if children:
        assert all(value is None for value in leaves(books).values())
        return
    if books["attributed_bytes"] is None:
        return
    rows = [p for p in document["processes"] if p["adapter"] == row["id"] and not p["self"]]
    vram = sum(p["vram_bytes"] for p in rows if p["vram_bytes"] is not None)
    shared = sum(c["vram_bytes"] for c in row["shared_clients"] or () if c["vram_bytes"] is not None)
    assert books["shared_bytes"] == shared
    assert books["attributed_bytes"] == vram + shared
    categories = [value for value in books["by_category"].values() if value is not None]
    assert sum(categories) + books["shared_bytes"] == books["attributed_bytes"]
    used = row["memory"]["used_bytes"]
    if used is None:
        assert books["unattributed_bytes"] is None
        return
    inside = books["reserved_bytes"]
    if books["unattributed_bytes"] is not None:
        assert used == books["attributed_bytes"] + books["unattributed_bytes"] + inside
    else:
        assert books["attributed_bytes"] + inside > used
    private = vram - sum(p["vram_shared_bytes"] or 0 for p in rows if p["vram_bytes"] is not None)
    if books["attributed_private_bytes"] is None:  # some row's shared part is not known
        assert books["unattributed_max_bytes"] is None
        assert any(p["vram_shared_bytes"] is None for p in rows if p["vram_bytes"] is not None)
        return
    assert books["attributed_private_bytes"] == private
    if books["unattributed_max_bytes"] is not None:
        assert books["unattributed_max_bytes"] == used - private - inside


def differences(expected: Any, actual: Any, document: dict[str, Any], path: str = "$") -> list[str]:
    """Where `actual` differs from a partial `expected`: dictionaries as subsets, rows found by their identity."""
    if isinstance(expected, dict):
        if path.endswith(".provenance") and isinstance(actual, int):
            actual = document["provenance"][actual]
            return [
                f"{path}.{leaf}: expected {prefix!r}, got {actual.get(leaf)!r}"
                for leaf, prefix in expected.items()
                if not str(actual.get(leaf)).startswith(prefix)
            ]
        if not isinstance(actual, dict):
            return [f"{path}: expected an object, got {actual!r}"]
        found = []
        for key, value in expected.items():
            if key not in actual:
                found.append(f"{path}.{key}: missing")
            else:
                found += differences(value, actual[key], document, f"{path}.{key}")
        return found
    if isinstance(expected, list) and expected and isinstance(expected[0], dict):
        return _row_differences(expected, actual, document, path)
    return [] if expected == actual and type(expected) is type(actual) else _unequal(expected, actual, path)


def _unequal(expected: Any, actual: Any, path: str) -> list[str]:
    numbers = isinstance(expected, int | float) and isinstance(actual, int | float)
    if numbers and not isinstance(expected, bool) and math.isclose(expected, actual, rel_tol=1e-9):
        return []
    return [f"{path}: expected {expected!r}, got {actual!r}"]


IDENTITIES = {
    "adapters": ("id",),
    "processes": ("adapter", "pid"),
    "backends": ("name",),
    "warnings": ("code", "adapter", "pid"),
    "holders": ("pid",),
    "shared_clients": ("client",),
}


def _row_differences(expected: list[Any], actual: Any, document: dict[str, Any], path: str) -> list[str]:
    if not isinstance(actual, list):
        return [f"{path}: expected a list, got {actual!r}"]
    identity = IDENTITIES[path.rpartition(".")[2]]
    found = []
    for row in expected:
        names = [key for key in identity if key in row]
        match = [other for other in actual if all(other[key] == row[key] for key in names)]
        name = ", ".join(f"{key}={row[key]}" for key in names)
        if len(match) != 1:
            found.append(f"{path}[{name}]: {len(match)} rows")
        else:
            found += differences(row, match[0], document, f"{path}[{name}]")
    extra = len(actual) - len(expected)
    if extra and path.rpartition(".")[2] in ("adapters", "processes"):
        found.append(f"{path}: {len(actual)} rows, expected {len(expected)}")
    return found
