"""Builds a real llama-server for `make integration-server`, once: tens of minutes on two cores.

The llama.cpp is the one that the source distribution of llama-cpp-python vendors, so that a package index is all
that is needed. CPU only, without optimisation for this machine; the web interface is left out.
`GPUSNAP_LLAMA_SERVER` names a server that is there already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.integration.setup_real import HERE

PACKAGE = "llama-cpp-python==0.3.36"
FOLDER = HERE / "llama-server"
BUILD = FOLDER / "build"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_C_FLAGS_RELEASE": "-O1",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1",
    "GGML_NATIVE": "OFF",
    "GGML_OPENMP": "OFF",
    "GGML_LLAMAFILE": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_BUILD_COMMIT": "0c1e57098",
    "LLAMA_BUILD_NUMBER": "1",
}


def server() -> Path:
    """The program; a test that needs it fails without it."""
    path = Path(os.environ.get("GPUSNAP_LLAMA_SERVER") or BUILD / "bin" / "llama-server")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: make integration-server builds it")
    return path


def fetch() -> Path:
    """The folder of the vendored llama.cpp."""
    found = sorted(FOLDER.glob("llama_cpp_python-*/vendor/llama.cpp"))
    if found:
        return found[0]
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-binary", ":all:", "-d", str(FOLDER), PACKAGE], check=True)
    (archive,) = FOLDER.glob("llama_cpp_python-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(FOLDER, filter="data")
    return next(iter(sorted(FOLDER.glob("llama_cpp_python-*/vendor/llama.cpp"))))


def main() -> None:
    if "GPUSNAP_LLAMA_SERVER" in os.environ or (BUILD / "bin" / "llama-server").exists():
        return
    source = fetch()
    definitions = [f"-D{name}={value}" for name, value in OPTIONS.items()]
    subprocess.run(["cmake", "-S", str(source), "-B", str(BUILD), *definitions], check=True)
    subprocess.run(["cmake", "--build", str(BUILD), "--target", "llama-server", "-j2"], check=True)


if __name__ == "__main__":
    main()
