"""Parsers of the files in `/proc/PID` (proc(5)). Pure: bytes in, plain values out."""

from __future__ import annotations

# State letters of fs/proc/array.c; `I` is an idle kernel thread, `P` a parked one.
STATES = {
    "R": "running",
    "W": "running",
    "S": "sleeping",
    "I": "sleeping",
    "P": "sleeping",
    "D": "disk-sleep",
    "K": "disk-sleep",
    "T": "stopped",
    "t": "stopped",
    "Z": "zombie",
    "X": "dead",
    "x": "dead",
}
PF_KTHREAD = 0x00200000


def parse_stat(raw: bytes) -> tuple[bytes, str, int, int, int, int, int]:
    """`stat` -> (comm, state letter, ppid, flags, CPU ticks, start ticks, resident pages); ValueError, IndexError.

    comm may hold blanks and parentheses, so the fields are counted from the last `)`.
    """
    opening = raw.index(b"(")
    closing = raw.rindex(b")")
    rest = raw[closing + 2 :].split(None, 22)
    # Field 25 must be there: a file that was cut inside field 24 would give a wrong figure.
    rest[22]
    comm = raw[opening + 1 : closing]
    cpu_ticks = int(rest[11]) + int(rest[12])
    ppid, start, pages = int(rest[1]), int(rest[19]), int(rest[21])
    # None of the kernel's: more pids than there are, seven centuries of ticks, 2^53 bytes; or below 0.
    if ppid >> 31 or cpu_ticks >> 53 or start >> 41 or pages >> 40:
        raise ValueError("a number that cannot be")
    return comm, rest[0].decode("ascii"), ppid, int(rest[6]), cpu_ticks, start, pages


def parse_uid(raw: bytes) -> int:
    """The effective uid of `status`, which ps(1) calls the user; ValueError."""
    start = raw.find(b"\nUid:")
    if start < 0:
        raise ValueError("no Uid line")
    uid = int(raw[start + 5 :].split(None, 2)[1])
    if uid >> 32:
        raise ValueError("a uid has 32 bits")
    return uid


def parse_boottime_offset(raw: bytes) -> tuple[int, int]:
    """(seconds, nanoseconds) that time_namespaces(7) adds to boot time here; `timens_offsets` of the reader."""
    for line in raw.splitlines():
        name, *numbers = line.split()
        if name in (b"boottime", b"7") and len(numbers) == 2:
            return int(numbers[0]), int(numbers[1])
    return 0, 0


def split_words(blob: bytes, exe: str | None) -> list[str]:
    """argv from `cmdline`, undecodable bytes kept as surrogates.

    A program that writes its title over argv (setproctitle, Chrome's helpers, vLLM's workers) leaves one text
    without NULs between the words, padded with NULs; that is split on blanks (charon#4688). A single word that
    is the program's own path keeps its blanks.
    """
    blob = blob.rstrip(b"\0") if blob.endswith(b"\0\0") else blob.removesuffix(b"\0")
    if not blob:
        return []
    text = blob.decode("utf-8", "surrogateescape")
    if "\0" in text or " " not in text or (exe is not None and text == exe.removesuffix(" (deleted)")):
        return text.split("\0")
    return text.split()


def parse_passwd(raw: bytes) -> dict[int, str]:
    """passwd(5) -> name by uid; the first line of a uid counts, as in getpwuid(3)."""
    names: dict[int, str] = {}
    for line in raw.decode("utf-8", "surrogateescape").splitlines():
        name, _, rest = line.partition(":")
        uid = rest.split(":", 2)[1:2]
        if name and uid and uid[0].isdigit():
            names.setdefault(int(uid[0]), name)
    return names
