"""The name of an ollama blob: the manifest that lists its digest (`manifests/HOST/NAMESPACE/NAME/TAG`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.llm.files import ProcessFiles

MAX_MANIFESTS = 2000
MAX_MANIFEST = 1 << 16
_DEFAULT_HOST = "registry.ollama.ai"
_DEFAULT_NAMESPACE = "library"
_MODEL = "application/vnd.ollama.image.model"


def names_of_blob(files: ProcessFiles, path: str) -> list[str]:
    """`gemma3:4b` for `.../blobs/sha256-HEX`; of several names for one file the shortest first."""
    folder, found, digest = path.partition("/blobs/sha256-")
    if not found:
        return []
    names = []
    for name, manifest in _manifests(files, folder + "/manifests"):
        if _lists(files, manifest, "sha256:" + digest):
            names.append(name)
    return sorted(names, key=lambda name: (len(name), name))


def _manifests(files: ProcessFiles, root: str) -> Iterator[tuple[str, str]]:
    count = 0
    for host in _list(files, root):
        for namespace in _list(files, f"{root}/{host}"):
            for name in _list(files, f"{root}/{host}/{namespace}"):
                for tag in _list(files, f"{root}/{host}/{namespace}/{name}"):
                    count += 1
                    if count > MAX_MANIFESTS:
                        return
                    yield _short(host, namespace, name, tag), f"{root}/{host}/{namespace}/{name}/{tag}"


def _short(host: str, namespace: str, name: str, tag: str) -> str:
    """As `ollama list` prints it."""
    parts = [name]
    if host != _DEFAULT_HOST or namespace != _DEFAULT_NAMESPACE:
        parts.insert(0, namespace)
    if host != _DEFAULT_HOST:
        parts.insert(0, host)
    return "/".join(parts) + ":" + tag


def _list(files: ProcessFiles, path: str) -> list[str]:
    try:
        return sorted(files.listdir(path))
    except OSError:
        return []


def _lists(files: ProcessFiles, path: str, digest: str) -> bool:
    try:
        data = files.read(path, MAX_MANIFEST)
        if digest.encode() not in data:
            return False
        layers = json.loads(data).get("layers")
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    if not isinstance(layers, list):
        return False
    return any(
        isinstance(layer, dict) and layer.get("mediaType") == _MODEL and layer.get("digest") == digest
        for layer in layers
    )
