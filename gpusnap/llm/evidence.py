"""Everything that is known of one model server's process, gathered from the host.

Strongest first: what its local API says (only when asked to probe), its log where that is a file this user can
read, its flags and environment, the header of its model file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import hf_cache, model_files, ollama_models
from gpusnap.llm.files import ProcessFiles
from gpusnap.llm.gguf_header import GgufError, Header
from gpusnap.llm.gguf_split import read_model
from gpusnap.llm.logs import sources
from gpusnap.llm.workload import Workload
from gpusnap.reading import Reading, null
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from gpusnap.host import Host
    from gpusnap.llm.logs import sglang, vllm
    from gpusnap.llm.logs.load import Load
    from gpusnap.llm.model_files import ModelFile
    from gpusnap.llm.probe import Silent
    from gpusnap.llm.program import Program
    from gpusnap.llm.servers import Server

_POOLS = frozenset({"vllm", "sglang"})
NO_FILE = null("none", "no model file is mapped, open or named")


class Evidence:
    """One process: its workload, model files, header, and what its log says."""

    __slots__ = (
        "api_silence",
        "api_source",
        "files",
        "header",
        "header_reading",
        "load",
        "log",
        "program",
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
        self.log: sources.LogFile | None = None
        self.load: Load | None = None
        self.rank: vllm.Rank | sglang.Rank | None = None
        # `llama-server /props`, and why there is none.
        self.api_source: str | None = None
        self.api_silence: Silent | None = None

    @property
    def model(self) -> ModelFile | None:
        return next((file for file in self.files if file.role == "model"), None)


class Gatherer:
    """Reads each file once a run: eight workers share one log, two servers one model."""

    def __init__(self, host: Host, *, probe: bool, key: str | None) -> None:
        self._host = host
        self._probe = probe
        self._key = key
        self._headers: dict[tuple[object, ...], Header | Reading] = {}

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
        self._read_log(evidence, files, program, started)
        return evidence

    def _find_files(self, evidence: Evidence, files: ProcessFiles, program: Program, mapped: set[bytes]) -> None:
        workload = evidence.workload
        evidence.files = model_files.find(files, mapped, workload)
        if evidence.model is None and workload.hf_model and workload.server == "llama.cpp":
            path = hf_cache.find_gguf(files, workload.hf_model, program.environ(*hf_cache.VARIABLES))
            if path is not None:
                workload.put("model", (path, workload.sources["hf_model"]))
                evidence.files = model_files.find(files, mapped, workload)
        model = evidence.model
        if model is not None and workload.server == "ollama":
            name = ollama_models.name_of_blob(files, model.path)
            workload.put("model_name", (name, "manifest") if name else None)

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

    def _read_log(self, evidence: Evidence, files: ProcessFiles, program: Program, started: float | None) -> None:
        for log in sources.find(files, program, evidence.workload.log_file, started):
            if self._take_log(evidence, log, program):
                evidence.log = log
                return

    def _take_log(self, evidence: Evidence, log: sources.LogFile, program: Program) -> bool:
        from gpusnap.llm.logs.lines import memory_lines

        lines = memory_lines(log.data)
        server = evidence.workload.server
        if server == "vllm":
            from gpusnap.llm.logs import vllm

            evidence.rank = _own_rank(vllm.read(lines), _own_pids(self._host, program.pid), own=log.own)
        elif server == "sglang":
            from gpusnap.llm.logs import sglang

            ranks = sglang.read(lines)
            evidence.rank = ranks.get(f"rank:{evidence.workload.rank}") or ranks.get("")
        else:
            from gpusnap.llm.logs import llama_cpp

            chosen = _own_loads(llama_cpp.read(lines), evidence, own=log.own)
            load = llama_cpp.last_complete(chosen)
            evidence.load = load if load is not None and _is_of(load, evidence) else None
            _take_settings(evidence.workload, chosen[-1] if chosen else None)
        return evidence.rank is not None or evidence.load is not None


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


def _own_pids(host: Host, pid: int) -> set[int]:
    """The process's number here and in its own pid namespace, as it writes it into its log (`NSpid`)."""
    pids = {pid}
    try:
        for line in host.proc.read(f"{pid}/status").splitlines():
            if line.startswith(b"NSpid:"):
                pids |= {int(word) for word in line.split()[1:] if word.isdigit()}
    except OSError:
        return pids
    return pids


def _own_rank(ranks: dict[str, vllm.Rank], pids: set[int], *, own: bool) -> vllm.Rank | None:
    for pid in pids:
        if f"pid:{pid}" in ranks:
            return ranks[f"pid:{pid}"]
    known = [rank for rank in ranks.values() if rank.weights_bytes is not None]
    # Without a pid in front (0.4 to 0.8, one card) the only rank of the log is this one.
    return known[0] if len(known) == 1 and (own or known[0].tag == "") else None


def _own_loads(loads: list[Load], evidence: Evidence, *, own: bool) -> list[Load]:
    """The process's own loads: all of its own log, or of its parent's log those of its port or model."""
    if own:
        return [load for load in loads if not load.tag]
    port = evidence.workload.runner_port
    chosen = [load for load in loads if port is not None and (load.port == port or load.tag == f"port:{port}")]
    if not chosen and evidence.model is not None and len({load.port for load in loads}) <= 1:
        path = evidence.model.path
        chosen = [load for load in loads if any(model.path == path for model in load.models)]
    return chosen


def _take_settings(workload: Workload, load: Load | None) -> None:
    """What the log says and the flags do not: at the default verbosity only the slots are in it."""
    if load is None or load.failed or load.is_projection():
        return
    main = next((context for context in load.contexts if not context.draft), None)
    settings = main.settings if main is not None else {}
    for name, key in (("context", "n_ctx"), ("sequences", "n_seq_max"), ("ubatch", "n_ubatch")):
        value = whole_number(settings.get(key, ""))
        workload.put(name, (value, "log") if value is not None else None)
    unified = settings.get("kv_unified") or load.slots.get("kv_unified")
    workload.put("unified", (unified == "true", "log") if unified else None)
    slots = whole_number(load.slots.get("n_slots", ""))
    slot = whole_number(load.slots.get("n_ctx_slot", ""))
    if slots is not None and slot is not None:
        workload.put("sequences", (slots, "log"))
        workload.put("context", (slot * (1 if workload.unified else slots), "log"))
    cache = next((c for c in main.caches if c.part == "kv"), None) if main is not None else None
    if cache is not None:
        workload.put("type_k", (cache.type_k, "log") if cache.type_k else None)
        workload.put("type_v", (cache.type_v, "log") if cache.type_v else None)
    if load.build is not None:
        workload.api.setdefault("build_info", load.build)


def _is_of(load: Load, evidence: Evidence) -> bool:
    """A log may be of an earlier run of another model: its weights must be as many as the file's."""
    if evidence.header is None:
        return True
    stored = sum(tensor.size for tensor in evidence.header.tensors if tensor.size is not None)
    return load.total("weights") >= 0.9 * stored
