"""The fixed facts of one process, each from its own file below `/proc/PID`; one that fails costs its own leaf."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gpusnap.collect.cgroup import CGROUP_LEAVES, is_root_only, parse_cgroup
from gpusnap.collect.pid_namespace import OVERFLOW_UID, in_cgroup_namespace, in_user_namespace
from gpusnap.collect.procfs import parse_boottime_offset, parse_passwd, parse_uid, split_words
from gpusnap.collect.redact import redact
from gpusnap.host import READ_LIMIT
from gpusnap.reading import Reading, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

# argv is its owner's to choose: at most so much is read and so many words are kept.
MAX_CMDLINE = 1 << 20
MAX_WORDS = 1024
_PASSWD_LIMIT = 1 << 22
_MAX_CGROUPS = 1024

_NONE = null("none")
_EXITED = null("exited")
_ZOMBIE = null("exited", "zombie")
_NOT_REQUESTED = null("not-requested")
_OTHER_CGROUP = null("not-exposed", "cgroup namespace")


class ProcessFiles:
    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._cmdline_mode = options.cmdline
        self._users: dict[int, Reading] = {}
        self._passwd: dict[int, str] | Reading | None = None
        self._cgroup_namespace: bool | None = None
        # By the file's content: the processes of one job or container have the same.
        self._cgroups: dict[bytes, dict[str, Reading]] = {}
        try:
            self._boot_offset = parse_boottime_offset(host.proc.read("self/timens_offsets"))
        except (OSError, ValueError):  # a kernel before 5.6
            self._boot_offset = (0, 0)

    @property
    def boot_offset_seconds(self) -> float:
        return self._boot_offset[0] + self._boot_offset[1] / 1e9

    def boot_offset_ticks(self, ticks_per_second: int) -> int:
        """What the reader's time namespace added to the start ticks in `stat`."""
        seconds, nanoseconds = self._boot_offset
        return seconds * ticks_per_second + nanoseconds * ticks_per_second // 1_000_000_000

    def read(self, pid: int, comm: bytes, *, kernel: bool, zombie: bool) -> tuple[dict[str, Reading], list[str]]:
        """(fixed facts, argv as it is)."""
        # A kernel thread has no program; a zombie has one no more.
        missing = _NONE if kernel else _ZOMBIE if zombie else _EXITED
        exe = self._link(f"{pid}/exe", missing)
        words, cmdline = self._cmdline(pid, exe, _ZOMBIE if zombie else None)
        uid, user = self._owner(pid)
        facts = {
            "name": measured(clean(comm), "proc.stat"),
            "exe": _cleaned(exe),
            "cmdline": cmdline,
            "cwd": _cleaned(self._link(f"{pid}/cwd", missing)),
            "uid": uid,
            "user": user,
        }
        facts.update(self._cgroup(pid))
        return facts, words

    def _link(self, path: str, missing: Reading) -> Reading:
        try:
            return measured(self._host.proc.readlink(path), "proc." + path.rpartition("/")[2])
        except (FileNotFoundError, ProcessLookupError):
            return missing
        except OSError as error:
            return _failure(error)

    def _cmdline(self, pid: int, exe: Reading, nothing: Reading | None) -> tuple[list[str], Reading]:
        try:
            blob = self._host.proc.read(f"{pid}/cmdline")
            if len(blob) >= READ_LIMIT:
                blob = self._host.proc.read(f"{pid}/cmdline", MAX_CMDLINE)
        except OSError as error:
            return [], _failure(error)
        words = split_words(blob, exe.value if isinstance(exe.value, str) else None)
        if self._cmdline_mode == "none":
            return words, _NOT_REQUESTED
        if not words and nothing is not None:
            return words, nothing
        shown = shown_words(words, redact if self._cmdline_mode == "redacted" else list)
        return words, measured(shown, "proc.cmdline")

    def _owner(self, pid: int) -> tuple[Reading, Reading]:
        try:
            uid = parse_uid(self._host.proc.read(f"{pid}/status"))
        except OSError as error:
            failure = _failure(error)
            return failure, failure
        except (ValueError, IndexError):
            unreadable = null("unknown-format", "proc.status")
            return unreadable, unreadable
        user = self._users.get(uid)
        if user is None:
            user = self._users[uid] = self._user_name(uid)
        # 65534 stands for everybody who has no number in this user namespace.
        return (user if user.provenance.startswith("null:ambiguous") else measured(uid, "proc.status")), user

    def _user_name(self, uid: int) -> Reading:
        if uid == OVERFLOW_UID and in_user_namespace(self._host):
            return null("ambiguous", "uid of another user namespace")
        if self._host.procfs_is_foreign():
            return self._foreign_user_name(uid)
        try:
            name = self._host.user_name(uid)
        except OSError:
            return null("no-permission", "user table")
        return _NONE if name is None else measured(clean(name), "passwd")

    def _foreign_user_name(self, uid: int) -> Reading:
        """Names are those of the machine that the procfs shows, never of the container that looks at it."""
        if self._passwd is None:
            try:
                self._passwd = parse_passwd(self._host.proc.read("1/root/etc/passwd", _PASSWD_LIMIT))
            except OSError:
                self._passwd = null("no-permission", "1/root/etc/passwd")
        if isinstance(self._passwd, Reading):
            return self._passwd
        name = self._passwd.get(uid)
        return _NONE if name is None else measured(clean(name), "passwd")

    def _cgroup(self, pid: int) -> dict[str, Reading]:
        try:
            raw = self._host.proc.read(f"{pid}/cgroup")
        except OSError as error:
            return dict.fromkeys(CGROUP_LEAVES, _failure(error))
        known = self._cgroups.get(raw)
        if known is None:
            if len(self._cgroups) >= _MAX_CGROUPS:
                self._cgroups.clear()
            known = self._cgroups[raw] = self._cgroup_of(raw)
        return known

    def _cgroup_of(self, raw: bytes) -> dict[str, Reading]:
        if is_root_only(raw) and self._is_in_cgroup_namespace():
            return dict.fromkeys(CGROUP_LEAVES, _OTHER_CGROUP)
        return {
            leaf: _NONE if value is None else measured(clean(value), "proc.cgroup")
            for leaf, value in parse_cgroup(raw).items()
        }

    def _is_in_cgroup_namespace(self) -> bool:
        if self._cgroup_namespace is None:
            self._cgroup_namespace = in_cgroup_namespace(self._host)
        return self._cgroup_namespace


def shown_words(words: Sequence[str], redaction: Callable[[Sequence[str]], list[str]]) -> list[str]:
    """The words as the document carries them: redacted whole, then cleaned and cut."""
    shown = [clean(word) for word in redaction(words[:MAX_WORDS])]
    if len(words) > MAX_WORDS:
        shown.append(f"…+{len(words) - MAX_WORDS} words")
    return shown


def _cleaned(reading: Reading) -> Reading:
    return measured(clean(reading.value), reading.provenance[9:]) if isinstance(reading.value, str) else reading


def _failure(error: OSError) -> Reading:
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return _EXITED
    name = errno.errorcode.get(error.errno or 0, "error")
    return null("no-permission" if isinstance(error, PermissionError) else "failed", name)
