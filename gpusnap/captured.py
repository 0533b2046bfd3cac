"""A machine that was kept in a folder: the tests' machines and what `--save-raw` wrote.

`tree.txt` holds the trees `proc`, `sys` and `root`; `captured_tree.py` tells its form. Beside it: `machine.json`
(clocks, names), `nvml.json`, `raw.json`, `commands.json`, `ioctls.json`, `perf.json`, `http.json`; any may be
missing. What `NAME.2.json` holds is laid over at the second sample.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from gpusnap.captured_check import checked
from gpusnap.captured_nvml import NVML_NAMES, CapturedNvml
from gpusnap.captured_tree import CapturedTree, Entry, os_error, parse_archive
from gpusnap.host import CommandResult, HttpReply, NvmlUnavailable, Unsupported, nvml_init_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class CapturedCounter:
    """A performance counter whose value at each sample was kept."""

    def __init__(self, host: CapturedHost, values: list[int]) -> None:
        self._host = host
        self._values = values
        self._opened = host.uptime()

    def read(self) -> tuple[int, int]:
        value = self._values[min(self._host.step, len(self._values)) - 1]
        return value, round((self._host.uptime() - self._opened) * 1e9)

    def close(self) -> None:
        return None


class CapturedHost:
    """A `Host` over a kept folder; `opened` lists every file that was read, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[str] = []
        self.requests: list[str] = []
        self.entries: dict[str, Entry] = {}
        self.children: dict[str, set[str]] = {}
        self._inodes: dict[str, int] = {}
        self.step = 1
        self._machine = self._json("machine.json")
        self.nvml_answers = self._json("nvml.json")
        self._commands = self._json("commands.json")
        self._ioctls = self._json("ioctls.json")
        self._http = self._json("http.json")
        self._perf = self._json("perf.json")
        self._raw = self._json("raw.json")
        self._wall = float(self._machine.get("wall_time", 1_796_040_000.0))
        self._uptime = float(self._machine.get("uptime", 86_400.0))
        self.platform: str = self._machine.get("platform", "linux")
        self.proc = CapturedTree(self, "proc")
        self.sys = CapturedTree(self, "sys")
        self.root = CapturedTree(self, "root")
        if (folder / "tree.txt").exists():
            self.overlay(parse_archive((folder / "tree.txt").read_bytes()))

    def _json(self, name: str) -> dict[str, Any]:
        import json

        path = self.folder / name
        if not path.exists():
            return {}
        try:
            return checked(name, json.loads(path.read_bytes()))
        except json.JSONDecodeError as fault:
            raise ValueError(f"{name}: {fault}") from fault

    def overlay(self, entries: Mapping[str, Entry | None]) -> None:
        """Lay entries over the tree; None removes the path and everything below it."""
        for path, entry in entries.items():
            if entry is None:
                for known in [p for p in self.entries if p == path or p.startswith(path + "/")]:
                    del self.entries[known]
            else:
                self.entries[path] = entry
        self.children = {}
        for path in self.entries:
            below = path
            while "/" in below:
                parent, _, leaf = below.rpartition("/")
                siblings = self.children.setdefault(parent, set())
                if leaf in siblings:
                    break
                siblings.add(leaf)
                below = parent
        for tree in ("proc", "sys", "root"):
            self.children.setdefault(tree, set())

    def inode(self, path: str) -> int:
        return self._inodes.setdefault(path, len(self._inodes) + 1000)

    def nvml(self) -> CapturedNvml:
        if not self.nvml_answers:
            raise NvmlUnavailable("absent", "libnvidia-ml.so.1: not found")
        init = self.nvml_answers.get("init")
        if isinstance(init, dict):
            if "unavailable" in init:
                raise NvmlUnavailable(*init["unavailable"])
            code = int(init["error"])
            raise nvml_init_failed(code, NVML_NAMES[code], init.get("library"))
        return CapturedNvml(self)

    def close_nvml(self) -> None:
        """Each `nvml()` is a new one anyway."""

    def run(self, argv: Sequence[str], timeout: float, limit: int = 1 << 22) -> CommandResult:
        answer = self._commands.get(" ".join(argv))
        if answer is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        if answer.get("timeout"):
            raise TimeoutError(f"{argv[0]}: no answer within {timeout} s")
        out, err = (str(answer.get(name, "")).encode() for name in ("stdout", "stderr"))
        if max(len(out), len(err)) > limit:
            raise OSError(errno.EFBIG, f"more than {limit:,} bytes of output", argv[0])
        return CommandResult(
            out,
            err,
            int(answer.get("returncode", 0)),
        )

    def http_get(
        self,
        address: str,
        port: int,
        path: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ARG002 - a kept answer comes at once
        limit: int,
    ) -> HttpReply:
        """`http.json`: {"127.0.0.1:8080/props": {"status": 200, "body": {...} | "text"} | {"errno": "ETIMEDOUT"}}.

        Where an answer names `key`, it is given only with that bearer token, else 401. What was asked is kept in
        `requests`; nothing listens at any other address.
        """
        asked = f"{address}:{port}{path}"
        self.requests.append(asked)
        answer = self._http.get(asked, {"errno": "ECONNREFUSED"})
        if "errno" in answer:
            number = getattr(errno, answer["errno"])
            raise OSError(number, os.strerror(number), asked)  # OSError picks TimeoutError for ETIMEDOUT
        if "key" in answer and headers.get("Authorization") != f"Bearer {answer['key']}":
            return HttpReply(401, b"")
        body = answer.get("body", "")
        if not isinstance(body, str):
            import json

            body = json.dumps(body)
        data = body.encode()
        if len(data) > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), asked)
        return HttpReply(int(answer.get("status", 200)), data)

    def raw(self, source: str, *args: object) -> Any:
        """`raw.json`: {"footprint 4711": {...} | {"errno": "ESRCH"} | {"unsupported": "why"}}."""
        key = " ".join([source, *map(str, args)])
        self.opened.append(f"raw/{key}")
        if key not in self._raw:
            if source in ("process", "footprint"):
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
            raise Unsupported(f"no such answer was kept: {key}")
        answer = self._raw[key]
        if isinstance(answer, dict):
            if "errno" in answer:
                number = getattr(errno, answer["errno"])
                raise OSError(number, os.strerror(number))
            if "unsupported" in answer:
                raise Unsupported(answer["unsupported"])
        return answer

    def exists(self, path: str) -> bool:
        if path in self._machine.get("existing", ()):
            return True
        full = "root/" + path.lstrip("/")
        return full in self.entries or full in self.children

    def drm_query(self, path: str, driver: str, query: int) -> bytes:
        """`ioctls.json`: `"dev/dri/renderD128 xe.query.1": {"hex": ...}`."""
        name = f"{path.lstrip('/')} {driver}.query.{query}"
        self.opened.append(f"root/{name}")
        answer = self._ioctls.get(name)
        if answer is None:
            raise Unsupported(f"no such query was kept: {name}")
        if "errno" in answer:
            raise os_error(getattr(errno, answer["errno"]), path.lstrip("/"))
        return bytes.fromhex(answer["hex"])

    def perf_counter(self, pmu: int, config: int, cpu: int) -> CapturedCounter:  # noqa: ARG002 - kept for any CPU
        """`perf.json`: `"10 0x0": [value at the first sample, at the second]`, or `{"errno": "EACCES"}`."""
        answer = self._perf.get(f"{pmu} {config:#x}")
        if answer is None:
            raise Unsupported(f"no such counter was kept: {pmu} {config:#x}")
        if isinstance(answer, dict):
            raise os_error(getattr(errno, answer["errno"]), "perf_event_open")
        self.opened.append(f"perf/{pmu} {config:#x}")
        return CapturedCounter(self, answer)

    def wall_time(self) -> float:
        return self._wall

    def uptime(self) -> float:
        return self._uptime

    def sleep(self, seconds: float) -> None:
        self._wall += seconds
        self._uptime += seconds
        self.step += 1
        path = self.folder / f"tree.{self.step}.txt"
        if path.exists():
            self.overlay(parse_archive(path.read_bytes()))
        self._raw = {**self._raw, **self._json(f"raw.{self.step}.json")}
        self._commands = {**self._commands, **self._json(f"commands.{self.step}.json")}
        later = self._json(f"nvml.{self.step}.json")
        if later:
            self.nvml_answers = {**self.nvml_answers, **later}
            self.nvml_answers["calls"] = {
                **self._json("nvml.json").get("calls", {}),
                **later.get("calls", {}),
            }

    def own_pid(self) -> int:
        return int(self._machine.get("own_pid", -1))

    def procfs_is_foreign(self) -> bool:
        return bool(self._machine.get("procfs_is_foreign", False))

    def pid_exists(self, pid: int) -> bool | None:
        if pid in self._machine.get("pids", ()):
            return True
        return str(pid) in self.children["proc"]

    def user_name(self, uid: int) -> str | None:
        name = self._machine.get("users", {}).get(str(uid))
        return None if name is None else str(name)

    def clock_ticks(self) -> int:
        return int(self._machine.get("clock_ticks", 100))

    def page_size(self) -> int:
        return int(self._machine.get("page_size", 4096))

    def uname(self) -> Mapping[str, str | None]:
        kept = self._machine.get("uname", {})
        return {key: kept.get(key) for key in ("hostname", "os", "kernel", "arch")}

    def environ(self) -> Mapping[str, str]:
        return dict(self._machine.get("environ", {}))
