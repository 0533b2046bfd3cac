"""What is known of one model server's process; `gather.py` collects it, `split.py` makes figures of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.hf_model import HfModel
    from gpusnap.llm.logs import breakdown, sglang, vllm
    from gpusnap.llm.logs.load import Load
    from gpusnap.llm.model_files import ModelFile
    from gpusnap.llm.probe import Silent
    from gpusnap.llm.program import Program
    from gpusnap.llm.servers import Server
    from gpusnap.llm.workload import Workload

NO_FILE = null("none", "no model file is mapped, open or named")


class Evidence:
    """One process: its workload, model files, header, and what its log and its API say."""

    __slots__ = (
        "api_silence",
        "api_source",
        "draft_header",
        "files",
        "header",
        "header_reading",
        "hf",
        "load",
        "program",
        "projection",
        "rank",
        "server",
        "workload",
    )

    def __init__(self, program: Program, server: Server | None, workload: Workload) -> None:
        self.program = program
        self.server = server
        self.workload = workload
        self.files: list[ModelFile] = []
        self.header: Header | None = None
        # Why there is no header.
        self.header_reading: Reading = NO_FILE
        # The draft model's, where there is one; a reading says why it is not known.
        self.draft_header: Header | Reading | None = None
        # The folder of a model in safetensors.
        self.hf: HfModel | None = None
        self.load: Load | None = None
        # The engine's own table of before it loaded, cards only: no measurement.
        self.projection: list[breakdown.Row] = []
        self.rank: vllm.Rank | sglang.Rank | None = None
        # Where the API answered, and why it did not.
        self.api_source: str | None = None
        self.api_silence: Silent | None = None

    @property
    def model(self) -> ModelFile | None:
        return next((file for file in self.files if file.role == "model"), None)
