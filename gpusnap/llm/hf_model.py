"""The folder of a Hugging Face model that vLLM, SGLang or TGI serves: a path, or a repository in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import hf_cache, hf_config, safetensors
from gpusnap.llm.gguf_cursor import GgufError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.llm.files import ProcessFiles
    from gpusnap.llm.hf_config import HfConfig


class HfModel:
    """`config` and `weights` are None where the folder has none that can be read."""

    __slots__ = ("config", "folder", "weights")

    def __init__(self, folder: str, config: HfConfig | None, weights: safetensors.Weights | None) -> None:
        self.folder = folder
        self.config = config
        self.weights = weights


def find(files: ProcessFiles, wanted: str, environ: Mapping[str, str]) -> HfModel | None:
    """`/models/qwen`, `./qwen` or `Qwen/Qwen3-8B`; of several kept revisions the first that has a config."""
    folders = []
    path = files.absolute(wanted)
    if path is not None:
        folders.append(path)
    if wanted.count("/") == 1 and not wanted.startswith(("/", ".")):
        folders += hf_cache.snapshot_folders(files, wanted, environ)
    for folder in folders:
        tree, name = files.place(folder)
        try:
            config = hf_config.read(tree, name)
        except OSError:
            continue
        if config is not None:
            return HfModel(folder, config, _weights(files, folder))
    return None


def _weights(files: ProcessFiles, folder: str) -> safetensors.Weights | None:
    tree, name = files.place(folder)
    try:
        return safetensors.read_folder(tree, name)
    except (OSError, safetensors.SafetensorsError, GgufError):
        return None
