"""A captured machine's document, held to the contract, for the tests of one backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract

if TYPE_CHECKING:
    from gpusnap.captured import CapturedHost


def taken(host: CapturedHost, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(host, CollectOptions(**options))))
    check_contract(document)
    return document


def source(document: dict[str, Any], row: dict[str, Any], leaf: str) -> str:
    return str(document["provenance"][row["provenance"]][leaf])
