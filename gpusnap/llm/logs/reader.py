"""Puts the lines of a log together into loads: which model adds to a load, which one starts the next.

The rules, each from a log that broke a simpler parser: lines of one device within a block are summed (two CPU
lines, the two caches of an SWA model); `--fit` runs the loader first without allocating; a compute buffer is
reserved again when the graph changes and replaces; a draft model, announced by its own line, adds; everything
else that loads again replaces. The router's children are told apart by their tag, ollama's runners by port.
"""

from __future__ import annotations

from gpusnap.llm.logs.load import Cache, Context, Load, Model


def _is_announced(load: Load) -> bool:
    """Nothing but a start was said so far: `starting llama-server`, `loading model`."""
    bare = all(not model.buffers and model.offloaded is None for model in load.models)
    return len(load.models) == 1 and bare and not load.contexts and not load.failed


class Reader:
    """The state between lines; `loads` grows, the last one is the open one."""

    def __init__(self) -> None:
        self.loads: list[Load] = []
        self.draft_next = False
        # The last thing said was about weights: they are summed in one block, and start a new one elsewhere.
        self.in_weights = False
        # "creating ... cache" was said since the last cache: what follows is a further cache of this context.
        self.creating = False

    def load(self, tag: str) -> Load:
        if not self.loads or (tag and self.loads[-1].tag != tag):
            same = [load for load in self.loads if load.tag == tag] if tag else []
            if same:  # the router's log interleaves its children: go on with this child's load
                self.loads.remove(same[-1])
                self.loads.append(same[-1])
            else:
                self.loads.append(Load(tag))
        return self.loads[-1]

    def start(self, tag: str, path: str | None = None) -> Load:
        """A new load; a draft model, announced before, joins the one that is open."""
        current = self.load(tag)
        if self.draft_next and current.models:
            current.models.append(Model(path, "draft"))
            self.draft_next = False
        elif _is_announced(current):
            current.models[-1].path = path or current.models[-1].path
        elif current.models or current.contexts:
            fresh = Load(tag)
            fresh.devices, fresh.build = current.devices, current.build
            fresh.models.append(Model(path))
            self.loads.append(fresh)
        else:
            current.models.append(Model(path))
        self.in_weights = True
        return self.loads[-1]

    def weights(self, tag: str, device: str, nbytes: int) -> None:
        load = self.load(tag)
        if not self.in_weights or not load.models:
            load = self.start(tag)
        load.models[-1].buffers.append((device, nbytes))

    def context(self, tag: str, *, fresh: bool = False) -> Context:
        load = self.load(tag)
        self.in_weights = False
        if not load.contexts or fresh or self.draft_next:
            draft = self.draft_next or (bool(load.models) and load.models[-1].role == "draft")
            if load.contexts and not draft:
                # The same model's next context: the one before is gone (llama-bench) or failed.
                load.contexts = [context for context in load.contexts if context.draft]
            load.contexts.append(Context(draft=draft))
            self.draft_next = False
        return load.contexts[-1]

    def buffer(self, tag: str, part: str, device: str, nbytes: int) -> None:
        context = self.context(tag)
        if part in ("output", "kv", "state") and context.has("compute"):
            context = self.context(tag, fresh=True)
        if part == "compute":
            context.failed = False  # it was reserved after all, on a second try
            context.replace(part, device, nbytes)
        else:
            context.buffers.append((part, device, nbytes))

    def projector(self, tag: str, part: str, device: str, nbytes: int) -> None:
        load = self.load(tag)
        load.projector = [row for row in load.projector if row[:2] != (part, device)]
        load.projector.append((part, device, nbytes))

    def cache(self, tag: str, cache: Cache) -> None:
        context = self.context(tag)
        same = [known for known in context.caches if (known.part, known.layers) == (cache.part, cache.layers)]
        if same and not self.creating:
            buffers = context.buffers[:]
            context = self.context(tag, fresh=True)
            # Its own buffer lines stand above this closing line.
            context.buffers = buffers[-1:] if buffers and buffers[-1][0] == cache.part else []
        context.caches.append(cache)
        self.creating = False

    def model_path(self, tag: str, path: str) -> None:
        load = self.load(tag)
        last = load.models[-1] if load.models else None
        if last is not None and last.path is None and not last.buffers and not load.contexts:
            last.path = path
            self.in_weights = True
        else:
            self.start(tag, path)

    def runner(self, port: int | None, path: str | None) -> None:
        """ollama starts a runner: what follows is that one's."""
        self.draft_next = False
        load = Load("", port)
        load.models.append(Model(path))
        self.loads.append(load)
        self.in_weights = True
