"""The `model` group of a row: what the model file says of itself, or the name that the server was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.model_files import repository_of
from gpusnap.llm.weights import quantization
from gpusnap.reading import Reading, computed, inferred, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.hf_model import HfModel
    from gpusnap.llm.model_files import ModelFile

_NOT_PRINTED = null("none", "it is named by the environment, whose values are not printed")
_MAX_NAME = 256
_TEXTS = ("name", "architecture", "quantization", "path")


def describe_model(evidence: Evidence, figures: MutableMapping[str, Reading]) -> None:
    """`model` is null where there is neither a file nor a name."""
    from gpusnap.llm.split import put_group

    workload, file, header = evidence.workload, evidence.model, evidence.header
    name = _name(evidence)
    if file is None and name is None and evidence.hf is None:
        reason = "its children load the models" if workload.role in ("front", "router") else ""
        figures["model"] = null("none", reason)
        return
    if evidence.hf is not None and header is None:
        leaves = _of_hf(evidence.hf, name)
        if workload.sources.get("hf_model") == "environ":
            leaves["path"] = _NOT_PRINTED
            leaves["name"] = leaves["name"] if name else _NOT_PRINTED
        put_group(figures, "model", leaves, _TEXTS)
        return
    missing = evidence.header_reading
    leaves = {
        "name": inferred(clean(name, _MAX_NAME), "model") if name else missing,
        "architecture": computed(header.architecture, "gguf") if header and header.architecture else missing,
        "parameters": computed(header.parameters, "gguf") if header else missing,
        "quantization": quantization(header) if header else missing,
        "layers": _layers(header) if header else missing,
        "context_trained": _trained(header) if header else missing,
        "file_bytes": _size(file, header),
        "path": _path(file) if file is not None else missing,
    }
    put_group(figures, "model", leaves, _TEXTS)


def _of_hf(hf: HfModel, name: str | None) -> dict[str, Reading]:
    """config.json and the headers of the weights."""
    config, stored = hf.config, hf.weights
    no_config, no_weights = null("not-exposed", "config.json does not say"), null("not-exposed", "no safetensors")

    def said(value: object) -> Reading:
        return no_config if value is None else computed(value, "config.json")

    quantization = (config.quantization if config is not None else None) or (stored.main_type if stored else None)
    return {
        "name": inferred(clean(name, _MAX_NAME), "model") if name else no_config,
        "architecture": said(config.architecture if config is not None else None),
        "parameters": computed(stored.parameters, "safetensors") if stored is not None else no_weights,
        "quantization": computed(quantization, "config.json+safetensors") if quantization else no_config,
        "layers": said(config.layers if config is not None else None),
        "context_trained": said(config.context_trained if config is not None else None),
        "file_bytes": measured(stored.file_bytes, "stat") if stored is not None else no_weights,
        "path": inferred(clean(hf.folder), "cmdline"),
    }


def _name(evidence: Evidence) -> str | None:
    """What people call it: the server's name for it, else the file's; a header may just say "Model"."""
    workload, file = evidence.workload, evidence.model
    if workload.model_name:
        return workload.model_name
    if workload.hf_model and workload.sources.get("hf_model") != "environ":
        return workload.hf_model
    if file is None:
        return None
    if file.how == "environ":
        return evidence.header.name if evidence.header is not None else None
    stem = file.path.rpartition("/")[2]
    if stem.startswith("sha256-"):
        return evidence.header.name if evidence.header is not None else stem[:19]
    if evidence.header is not None and evidence.header.name:
        return evidence.header.name
    return repository_of(file.path) or stem.removesuffix(".gguf").removesuffix(".safetensors")


def _layers(header: Header) -> Reading:
    try:
        return computed(Facts(header).layers, "gguf")
    except Unsettled as unsettled:
        return null(unsettled.reason, unsettled.words)


def _trained(header: Header) -> Reading:
    value = header.number(f"{header.architecture}.context_length")
    return null("not-exposed") if value is None else computed(value, "gguf")


def _size(file: ModelFile | None, header: Header | None) -> Reading:
    """All parts of a split model together."""
    if header is not None and not header.missing:
        return measured(header.file_bytes, "stat")
    if file is None or file.size is None:
        return null("not-exposed")
    return measured(file.size, "stat")


def _path(file: ModelFile) -> Reading:
    if file.how == "environ":
        return _NOT_PRINTED
    path = file.path + (" (deleted)" if file.deleted else "")
    return inferred(clean(path), file.how)
