"""Both encoders write the same bytes, and every reader reads them alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions

EXAMPLE = Path(__file__).parents[2] / "examples/machines/rtx4080-desktop"
# Encodes standard input without orjson loaded.
PLAIN = (
    "import json,sys; from gpusnap.codec import dumps; sys.stdout.buffer.write(dumps(json.load(sys.stdin.buffer)))"
)


def test_python_json_orjson_and_jq_read_alike() -> None:
    document = collect(CapturedHost(EXAMPLE), CollectOptions(labels={"site": "日本", "odd": 'a"b\\c'}))
    line = dumps(document)
    assert b"\n" not in line
    assert json.loads(line) == orjson.loads(line) == document
    plain = subprocess.run([sys.executable, "-c", PLAIN], input=line, capture_output=True, check=True).stdout
    assert plain == line
    read = subprocess.run(["jq", "-c", "."], input=line, capture_output=True, check=True).stdout
    assert json.loads(read) == document


def test_integers_past_2_53_are_refused_by_orjson() -> None:
    with pytest.raises(TypeError):
        dumps({"processes": [], "x": 2**53 + 1})
