"""Which model files a process works with: mapped, open, or named by its settings.

A mapping is the best evidence and often gone: with everything on the card, or `--no-mmap`, nothing stays mapped
after loading. One file counts once, however its path is spelled (links, `./`, a second mapping): identity is
(device, inode). A deleted file stays in memory all the same (ollama#4443) and is read through its descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.host import Tree
    from gpusnap.llm.files import ProcessFiles
    from gpusnap.llm.workload import Workload

_DELETED = " (deleted)"
_WEIGHTS = (".gguf", ".safetensors")
_BLOB = "/blobs/sha256-"
MAX_FILES = 512


class ModelFile:
    """`tree`, `name`: where to read it, None where nobody can. `how`: mapped, open, cmdline, environ or api."""

    __slots__ = ("deleted", "how", "identity", "name", "path", "role", "size", "tree")

    def __init__(self, path: str, how: str) -> None:
        self.path = path
        self.how = how
        self.role = ""
        self.deleted = False
        self.size: int | None = None
        self.identity: tuple[object, ...] = (path,)
        self.tree: Tree | None = None
        self.name = ""


def is_weights(path: str) -> bool:
    return path.endswith(_WEIGHTS) or _BLOB in path


def find(files: ProcessFiles, mapped: Iterable[bytes], workload: Workload) -> list[ModelFile]:
    """The process's model files, the main model first; roles are `model`, `mmproj`, `draft`, `lora` or empty."""
    found: dict[tuple[object, ...], ModelFile] = {}
    for path, role in _named(workload):
        _add(found, files, path, workload.sources.get(role, "api" if role == "model" else "cmdline"), role)
    paths = [path.decode("utf-8", "surrogateescape") for path in mapped]
    for path in sorted(path for path in paths if is_weights(path.removesuffix(_DELETED)))[:MAX_FILES]:
        _add(found, files, path, "mapped", "")
    for number, target in files.descriptors():
        if is_weights(target.removesuffix(_DELETED)) and len(found) < MAX_FILES:
            _add(found, files, target, "open", "", descriptor=number)
    return _with_a_main_model(list(found.values()), workload)


def _named(workload: Workload) -> list[tuple[str, str]]:
    named = [(workload.model, "model"), (workload.mmproj, "mmproj"), (workload.draft, "draft")]
    named += [(path, "lora") for path in workload.lora]
    return [(path, role) for path, role in named if path]


def _add(
    found: dict[tuple[object, ...], ModelFile],
    files: ProcessFiles,
    path: str,
    how: str,
    role: str,
    descriptor: str | None = None,
) -> None:
    file = _look(files, path, how, descriptor)
    if file is None:
        return
    if file.deleted:
        # The settings name the path, and this is what was loaded from it; another file may have the name by now.
        for named in [other for other in found.values() if other.path == file.path and not other.deleted]:
            role, named.role = role or named.role, ""
            if named.tree is None:
                del found[named.identity]
    known = found.setdefault(file.identity, file)
    known.role = known.role or role
    if how == "mapped" and not known.deleted:
        known.how = how
    if known.tree is None and file.tree is not None:
        known.tree, known.name, known.size = file.tree, file.name, file.size


def _look(files: ProcessFiles, path: str, how: str, descriptor: str | None) -> ModelFile | None:
    deleted = path.endswith(_DELETED)
    absolute = files.absolute(path.removesuffix(_DELETED))
    if absolute is None:
        return None
    file = ModelFile(absolute, how)
    file.deleted = deleted
    if deleted:
        # Under the old name there may be another file by now: only the descriptor leads to this one.
        file.identity = (absolute, "deleted")
        if descriptor is None:
            return file
        file.tree, file.name = files.host.proc, f"{files.pid}/fd/{descriptor}"
    else:
        file.tree, file.name = files.place(absolute)
    try:
        stat = file.tree.stat(file.name)
    except OSError:
        file.tree = None
        return file
    file.size = stat.size
    if not deleted:
        file.identity = (stat.device, stat.inode)
    return file


def _with_a_main_model(found: list[ModelFile], workload: Workload) -> list[ModelFile]:
    """Without a flag the largest file is the model; an mmproj is told by its name."""
    for file in found:
        if not file.role and "mmproj" in file.path.rpartition("/")[2].lower():
            file.role = "mmproj"
    if not any(file.role == "model" for file in found):
        rest = [file for file in found if not file.role and _fits(file, workload)]
        if rest:
            max(rest, key=lambda file: (file.size or 0, file.path)).role = "model"
    return sorted(found, key=lambda file: (file.role != "model", file.role, file.path))


def _fits(file: ModelFile, workload: Workload) -> bool:
    """With `-hf user/repo` only a file of that repository's cache is meant (two caches, two spellings)."""
    repository = (workload.hf_model or "").partition(":")[0]
    if "hf_model" not in workload.sources or workload.server not in ("llama.cpp",):
        return True
    spellings = ("models--" + repository.replace("/", "--"), repository.replace("/", "_") + "_")
    return any(spelling.lower() in file.path.lower() for spelling in spellings)


def repository_of(path: str) -> str | None:
    """`.../models--Qwen--Qwen3-8B-GGUF/snapshots/REV/x.gguf` -> `Qwen/Qwen3-8B-GGUF`."""
    for part in path.split("/"):
        if part.startswith("models--"):
            return part[len("models--") :].replace("--", "/", 1)
    return None
