"""A model in parts: `name-00001-of-00004.gguf` (llama-gguf-split). The first has the metadata, all have tensors.

The engine takes any part's path as it takes the first one's; here too. A part that is missing leaves the
architecture and the cache known and the weights unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import gguf_constants
from gpusnap.llm.gguf_cursor import GgufError, TreeSource
from gpusnap.llm.gguf_header import Header, read_header

if TYPE_CHECKING:
    from gpusnap.host import Tree

MAX_PARTS = 512
PART_READ = 8 << 20  # a later part has three keys and a tensor table
PART_STRINGS = 1000
MAX_TENSORS = 32_768  # of all parts together
_TAIL = len("-00001-of-00004.gguf")


def part_paths(path: str) -> list[str]:
    """The paths of all parts, in order; the path alone where its name is not that of a part."""
    tail = path[-_TAIL:]
    number, count = tail[1:6], tail[10:15]
    if tail != f"-{number}-of-{count}.gguf" or not (tail.isascii() and (number + count).isdigit()):
        return [path]
    if not 1 <= int(number) <= int(count) <= MAX_PARTS:
        return [path]
    return [f"{path[:-_TAIL]}-{part:05}-of-{count}.gguf" for part in range(1, int(count) + 1)]


def read_model(tree: Tree, path: str) -> Header:
    """The header of a model, its parts put together. GgufError and OSError are those of its first part."""
    paths = part_paths(path)
    header = read_header(TreeSource(tree, paths[0]))
    key = gguf_constants.key("Split", "LLM_KV_SPLIT_COUNT", "split.count")
    announced = header.number(key) or 1
    if len(paths) == 1:
        if announced > 1:
            _leave_out(header, f"parts 2 to {announced}")
        return header
    if announced != len(paths):
        raise GgufError(f"the name says {len(paths)} parts, the header {announced}")
    for number, part in enumerate(paths[1:], 2):
        _add_part(header, tree, part, f"part {number} of {len(paths)}")
    return header


def _add_part(header: Header, tree: Tree, path: str, words: str) -> None:
    """`words` without the path: an environment may have named it, whose values are not printed."""
    try:
        part = read_header(TreeSource(tree, path), PART_READ, PART_STRINGS)
    except OSError as error:
        _leave_out(header, f"{words}: {error.strerror or 'it cannot be read'}")
        return
    except GgufError as error:
        _leave_out(header, f"{words}: {error}")
        return
    header.tensors += part.tensors
    header.file_bytes += part.file_bytes
    header.data_bytes += part.data_bytes
    header.complete = header.complete and part.complete
    if len(header.tensors) > MAX_TENSORS:
        raise GgufError("the parts together have more tensors than any model")


def _leave_out(header: Header, what: str) -> None:
    header.missing.append(what)
    header.complete = False
