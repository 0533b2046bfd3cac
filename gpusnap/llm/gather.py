"""Gathers the evidence on a model server's process from the host.

Strongest first: what its local API says (only when asked to probe), its log where that is a file this user can
read, its flags and environment, the header of its model file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import hf_cache, model_files, ollama_models
from gpusnap.llm.evidence import Evidence
from gpusnap.llm.files import ProcessFiles
from gpusnap.llm.gguf_header import GgufError, Header
from gpusnap.llm.gguf_split import read_model
from gpusnap.llm.logs import sources
from gpusnap.llm.own_log import take_log
from gpusnap.llm.workload import Workload
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.host import Host
    from gpusnap.llm.hf_model import HfModel
    from gpusnap.llm.logs.lines import Line
    from gpusnap.llm.model_files import ModelFile
    from gpusnap.llm.program import Program
    from gpusnap.llm.servers import Server

MAX_LOGS = 64
_OF_SAFETENSORS = frozenset({"vllm", "sglang", "tgi"})


class Gatherer:
    """Reads each file once a run: eight workers share one log, two servers one model."""

    def __init__(self, host: Host, *, probe: bool, key: str | None) -> None:
        self._host = host
        self._probe = probe
        self._key = key
        self._headers: dict[tuple[object, ...], Header | Reading] = {}
        # A log's (device, inode) -> its size when it was read, and its lines.
        self._logs: dict[tuple[int, int], tuple[int, list[Line]]] = {}
        self._hf: dict[str, HfModel | None] = {}

    def gather(
        self,
        program: Program,
        server: Server | None,
        workload: Workload | None,
        mapped: set[bytes],
        started: float | None,
    ) -> Evidence:
        """`server` None: an unknown program with a model file mapped."""
        workload = workload if workload is not None else Workload("")
        files = ProcessFiles(self._host, program.pid, program.cwd)
        evidence = Evidence(program, server, workload)
        self._find_files(evidence, files, program, mapped)
        if self._probe:
            self.ask(evidence)
            if evidence.model is None and isinstance(workload.api.get("model_path"), str):
                workload.put("model", (str(workload.api["model_path"]), "api"))
                self._find_files(evidence, files, program, mapped)
        self._read_header(evidence)
        self._find_hf(evidence, files, program)
        self._read_log(evidence, files, program, started)
        return evidence

    def _find_files(self, evidence: Evidence, files: ProcessFiles, program: Program, mapped: set[bytes]) -> None:
        workload = evidence.workload
        evidence.files = model_files.find(files, mapped, workload)
        if evidence.model is None and workload.hf_model and workload.server == "llama.cpp":
            path = hf_cache.find_gguf(files, workload.hf_model, program.environ(*hf_cache.VARIABLES))
            if path is not None:
                workload.put("model", (path, workload.sources["hf_model"]))
                self._take_projector(workload, files, path)
                evidence.files = model_files.find(files, mapped, workload)
        model = evidence.model
        if model is not None and workload.server == "ollama":
            workload.model_names = ollama_models.names_of_blob(files, model.path)
            workload.put("model_name", (workload.model_names[0], "manifest") if workload.model_names else None)

    def _take_projector(self, workload: Workload, files: ProcessFiles, path: str) -> None:
        if workload.mmproj is not None or not workload.mmproj_auto:
            return
        found = hf_cache.find_projectors(files, path)
        if len(found) == 1:
            workload.put("mmproj", (found[0], workload.sources["hf_model"]))
        workload.mmproj_is_open = len(found) > 1

    def ask(self, evidence: Evidence) -> None:
        """The local API, if one of this server's own processes listens; what it said before is forgotten."""
        from gpusnap.llm.probe import Silent, find_api

        program, server, workload = evidence.program, evidence.server, evidence.workload
        if server is None:
            return
        workload.api, workload.claims = {}, {}
        evidence.api_source, evidence.api_silence = None, None
        try:
            api = find_api(self._host, program, process_tree(program, server), workload, server.PATHS, self._key)
            server.ask(api, workload)
            evidence.api_source = f"{api.address}:{api.port}"
        except Silent as silent:
            evidence.api_silence = silent

    def _read_header(self, evidence: Evidence) -> None:
        model = evidence.model
        if model is None:
            return
        found = self.header_of(model)
        if isinstance(found, Header):
            evidence.header = found
        else:
            evidence.header_reading = found
        draft = next((file for file in evidence.files if file.role == "draft"), None)
        if draft is not None:
            evidence.draft_header = self.header_of(draft)

    def header_of(self, file: ModelFile) -> Header | Reading:
        """The header of a GGUF file, or why there is none."""
        if file.tree is None:
            return (
                null("exited", "the file is deleted")
                if file.deleted
                else null("not-exposed", "the file is not there")
            )
        known = self._headers.get((file.identity, file.size))
        if known is None:
            try:
                known = read_model(file.tree, file.name)
            except PermissionError:
                known = null("no-permission", "the model file may not be read")
            except OSError as error:
                known = null("not-exposed", error.strerror or "the model file can't be read")
            except GgufError as error:
                known = null("unknown-format", str(error))
            self._headers[(file.identity, file.size)] = known
        return known

    def _find_hf(self, evidence: Evidence, files: ProcessFiles, program: Program) -> None:
        """config.json and the headers of the weights, for servers of safetensors."""
        workload = evidence.workload
        if workload.server not in _OF_SAFETENSORS or not workload.hf_model:
            return
        from gpusnap.llm.hf_model import find

        if workload.hf_model not in self._hf:
            self._hf[workload.hf_model] = find(files, workload.hf_model, program.environ(*hf_cache.VARIABLES))
        evidence.hf = self._hf[workload.hf_model]

    def _read_log(self, evidence: Evidence, files: ProcessFiles, program: Program, started: float | None) -> None:
        for log in sources.find(files, program, evidence.workload.log_file, started):
            if take_log(evidence, self._lines_of(log), own=log.own):
                return

    def _lines_of(self, log: sources.LogFile) -> list[Line]:
        """Eight workers share one log: it is read once."""
        from gpusnap.llm.logs.lines import memory_lines

        size, lines = self._logs.get(log.identity, (-1, []))
        if size != log.size:
            if len(self._logs) >= MAX_LOGS:
                self._logs.clear()  # a run of days sees many logs come and go
            lines = memory_lines(log.read())
            self._logs[log.identity] = (log.size, lines)
        return lines


def process_tree(program: Program, server: Server) -> list[int]:
    """The pids of a server: the topmost ancestor that is the same server, and everything below it."""
    top = program
    for ancestor in program.ancestors():
        if server.recognise(ancestor) is None:
            break
        top = ancestor
    pids = [top.pid, *top.descendants(), program.pid]
    pids += [ancestor.pid for ancestor in program.ancestors() if server.recognise(ancestor) is not None]
    return list(dict.fromkeys(pids))
