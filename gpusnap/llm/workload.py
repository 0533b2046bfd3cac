"""What is known of one model server: settings, where each comes from, and what its own words say.

A server file (`servers/`) fills it from flags and environment; logs and the local API overrule what they know
better. A value that nobody stated is None, and the split of memory then says what is missing instead of guessing.
"""

from __future__ import annotations


class Drafting:
    """How a server drafts tokens, where it does with a second context: `drafting.py` says what that takes."""

    __slots__ = (
        "context",
        "depth",
        "device",
        "gpu_layers",
        "kinds",
        "overrides",
        "repository",
        "type_k",
        "type_v",
    )

    def __init__(self) -> None:
        self.kinds: list[str] = []  # --spec-type
        self.repository: str | None = None  # -hfd: the draft model's file is not named
        self.context: int | None = None  # -cd, builds until 2026-05
        self.depth: int | None = None  # tokens drafted at once
        self.type_k = "f16"  # whatever the main cache's are
        self.type_v = "f16"
        self.gpu_layers: int | None = None
        self.overrides: list[tuple[str, str]] = []
        self.device: str | None = None


class Workload:
    """One server process and what it was told. `sources` maps a setting to where it was found."""

    __slots__ = (
        "api",
        "claims",
        "context",
        "default_port",
        "devices",
        "draft",
        "drafting",
        "drafts",
        "experts_apart",
        "flash_attention",
        "fraction",
        "gpu_layers",
        "hf_model",
        "kv_offload",
        "log_file",
        "lora",
        "main_gpu",
        "mmproj",
        "mmproj_auto",
        "mmproj_device",
        "mmproj_is_open",
        "mmproj_offload",
        "model",
        "model_name",
        "model_names",
        "output_counts",
        "overrides",
        "port",
        "rank",
        "ranks",
        "remote_devices",
        "role",
        "runner_port",
        "sequences",
        "server",
        "settings_pid",
        "sources",
        "split_mode",
        "stages",
        "swa_full",
        "tensor_split",
        "type_k",
        "type_v",
        "ubatch",
        "unified",
        "visible",
        "windows",
    )

    def __init__(self, server: str) -> None:
        self.server = server
        # What this process does in its server: "server", "runner", "worker", "router", "front" or "cli".
        self.role = "server"
        self.sources: dict[str, str] = {}
        # The process whose words these settings are: a worker's flags are its parent's.
        self.settings_pid: int | None = None
        self.model: str | None = None  # a path as the process names it
        self.model_name: str | None = None  # a name for people: an alias, an ollama tag, a repository
        self.model_names: list[str] = []  # all tags of an ollama model
        self.hf_model: str | None = None  # a repository or folder of safetensors
        self.mmproj: str | None = None
        self.mmproj_is_open = False  # a repository has several
        self.mmproj_auto = False  # the projector of its repository (-hf) is loaded with it
        self.draft: str | None = None
        self.drafts = False  # it drafts tokens (MTP): extra layers, a second context
        self.drafting = Drafting()
        self.lora: list[str] = []
        # Tokens of all sequences together; None after `-c 0` or without -c: the model's whole context, which the
        # engine may have reduced to what fits.
        self.context: int | None = None
        self.sequences: int | None = None
        self.unified: bool | None = None
        self.type_k: str | None = None
        self.type_v: str | None = None
        self.ubatch: int | None = None
        self.flash_attention: bool | None = None
        self.swa_full: bool | None = None
        self.windows = True
        self.gpu_layers: int | None = None  # -1: the engine's choice, -2: all
        # -ngl counts the output layer as one; ollama's own runner puts that many repeating layers on the card.
        self.output_counts = True
        self.kv_offload = True
        self.mmproj_offload = True
        # Tensors sent elsewhere by hand, in the order in which they are tried (`overrides.py`):
        # ("pattern", "exps=CPU"), ("experts", "4"), ("ffn", "4").
        self.overrides: list[tuple[str, str]] = []
        self.split_mode: str | None = None
        self.tensor_split: str | None = None
        self.main_gpu: int | None = None
        self.devices: str | None = None  # -dev: the devices to use, in this order
        self.mmproj_device: str | None = None
        self.remote_devices = False  # some layers may be on other machines (--rpc)
        # What its environment says of the cards it may see: CUDA_VISIBLE_DEVICES and its kin.
        self.visible: dict[str, str] = {}
        self.fraction: float | None = None  # vLLM's and SGLang's share of the card
        self.rank: str | None = None
        self.ranks: int | None = None  # tensor parallel: each holds its share of every layer
        self.stages = 1  # pipeline parallel: each holds its share of the layers
        self.experts_apart = False  # expert parallel over several engines: no even shares
        self.port: int | None = None
        self.runner_port: int | None = None  # of a runner below the process that serves the API
        self.default_port: int | None = None
        self.log_file: str | None = None
        # What the local API said, under its own names.
        self.api: dict[str, object] = {}
        # What the workload claims about its memory, in bytes: "ollama /api/ps" -> 12e9.
        self.claims: dict[str, int] = {}

    def put(self, name: str, found: tuple[object, str] | None) -> None:
        """Take a setting with its source; what is already known stays."""
        if found is not None and name not in self.sources:
            setattr(self, name, found[0])
            self.sources[name] = found[1]

    def source_of(self, *names: str) -> str:
        """`cmdline+environ`: where these settings come from, each source once."""
        return "+".join(dict.fromkeys(self.sources[name] for name in names if name in self.sources))
