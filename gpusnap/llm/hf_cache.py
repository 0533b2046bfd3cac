"""Files of `-hf user/repo[:quant]` in the caches that llama.cpp downloads to.

Now Hugging Face's own cache (`hub/models--user--repo/snapshots/REVISION/`), before 2026 `~/.cache/llama.cpp` with
the repository in the file's name. The folders are settings of the process's environment (`HF_HUB_CACHE`,
`HF_HOME`, `LLAMA_CACHE`, `XDG_CACHE_HOME`, `HOME`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.llm.files import ProcessFiles

VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "LLAMA_CACHE", "XDG_CACHE_HOME", "HOME")
MAX_ENTRIES = 1000


def hub_folders(environ: Mapping[str, str]) -> list[str]:
    """Where Hugging Face's cache may be, most specific first."""
    folders = [environ.get(name, "") for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    if environ.get("HF_HOME"):
        folders.append(environ["HF_HOME"] + "/hub")
    folders += [base + "/huggingface/hub" for base in _cache_homes(environ)]
    return [folder for folder in dict.fromkeys(folders) if folder.startswith("/")]


def _cache_homes(environ: Mapping[str, str]) -> list[str]:
    if environ.get("XDG_CACHE_HOME"):
        return [environ["XDG_CACHE_HOME"]]
    return [environ["HOME"] + "/.cache"] if environ.get("HOME") else []


def snapshot_folders(files: ProcessFiles, repository: str, environ: Mapping[str, str]) -> list[str]:
    """Every kept revision of `user/repo`."""
    name = "models--" + repository.replace("/", "--")
    found = []
    for hub in hub_folders(environ):
        base = f"{hub}/{name}/snapshots"
        found += [f"{base}/{revision}" for revision in _list(files, base)]
    return found


def find_gguf(files: ProcessFiles, wanted: str, environ: Mapping[str, str]) -> str | None:
    """The file that `-hf wanted` means, if the caches hold exactly one that fits."""
    repository, _, quant = wanted.partition(":")
    if repository.count("/") != 1:
        return None
    paths = []
    for folder in snapshot_folders(files, repository, environ):
        paths += [f"{folder}/{name}" for name in _list(files, folder)]
    old = environ.get("LLAMA_CACHE") or next((home + "/llama.cpp" for home in _cache_homes(environ)), "")
    if old.startswith("/"):
        prefix = repository.replace("/", "_").lower() + "_"
        paths += [f"{old}/{name}" for name in _list(files, old) if name.lower().startswith(prefix)]
    fitting = [path for path in paths if _fits(path.rpartition("/")[2].lower(), quant.lower())]
    first_parts = [path for path in fitting if _is_first(path.rpartition("/")[2])]
    names = {path.rpartition("/")[2].lower() for path in first_parts}
    return first_parts[0] if len(names) == 1 else None


def find_projectors(files: ProcessFiles, model: str) -> list[str]:
    """The projectors beside a model of a repository, which `-hf` downloads and loads with it."""
    folder = model.rpartition("/")[0]
    if "/snapshots/" not in folder:
        return []
    names = [name for name in _list(files, folder) if "mmproj" in name.lower() and name.endswith(".gguf")]
    return [f"{folder}/{name}" for name in names]


def _is_first(name: str) -> bool:
    """Not one of the later parts of a split model."""
    return "-of-" not in name or "-00001-of-" in name


def _fits(name: str, quant: str) -> bool:
    if not name.endswith(".gguf") or "mmproj" in name:
        return False
    return not quant or quant in name


def _list(files: ProcessFiles, path: str) -> list[str]:
    try:
        return sorted(files.listdir(path))[:MAX_ENTRIES]
    except OSError:
        return []
