"""What a process's cgroup path says of it: container, pod, systemd unit, Slurm job. Pure.

Read from `/proc/PID/cgroup` and never from the environment: vLLM's engine processes drop POD_NAME, the path
still has the pod (tensor-fusion#724). cgroups(7): a line a hierarchy, `ID:CONTROLLERS:PATH`, with `0::PATH`
for version 2. The innermost match counts: docker in docker, a kind node, systemd inside a container.
"""

from __future__ import annotations

CGROUP_LEAVES = ("container_id", "pod_uid", "systemd_unit", "slurm_job_id")

_HEX = frozenset("0123456789abcdef")
_UNIT_ENDS = (".service", ".scope", ".socket", ".mount", ".swap")


def parse_cgroup(raw: bytes) -> dict[str, str | None]:
    """The file's content -> a value or None for each of CGROUP_LEAVES."""
    found: dict[str, str | None] = dict.fromkeys(CGROUP_LEAVES)
    for line in raw.decode("utf-8", "surrogateescape").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon or path == "/":
            continue
        parts = path.removesuffix(" (deleted)").split("/")
        if found["container_id"] is None:
            found["container_id"] = _container(parts)
        if found["pod_uid"] is None:
            found["pod_uid"] = _pod(parts)
        if found["slurm_job_id"] is None:
            found["slurm_job_id"] = _slurm_job(parts)
        if found["systemd_unit"] is None and (hierarchy == "0" or controllers == "name=systemd"):
            found["systemd_unit"] = _unit(parts)
    return found


def is_root_only(raw: bytes) -> bool:
    """Every path is `/`: all that a process inside a cgroup namespace sees of itself."""
    return all(line.endswith(b":/") for line in raw.splitlines())


def _container(parts: list[str]) -> str | None:
    for index in range(len(parts) - 1, 0, -1):
        name = _container_of(parts[index], parts[index - 1])
        if name is not None:
            return name
    return None


def _container_of(part: str, parent: str) -> str | None:
    """docker, containerd, CRI-O and podman name the group after the 64-digit id; LXC and nspawn after the name."""
    stem = part.removesuffix(".scope")
    if _is_hex(stem[-64:], 64) and not stem[-65:-64].isalnum():
        # conmon watches a container from outside; its group bears the id of the container it watches.
        return None if "conmon" in stem else stem[-64:]
    if part.startswith("lxc.payload."):
        return part[12:]
    if parent in ("lxc", "lxc.payload"):
        return part
    if part.startswith("systemd-nspawn@") and part.endswith(".service"):
        return part[15:-8].replace("\\x2d", "-")
    task, _, number = part.partition("-")
    if _is_hex(task, 32) and number.isdigit() and parent == task:
        return part  # ECS on Fargate: /ecs/TASK/TASK-NUMBER
    return None


def _pod(parts: list[str]) -> str | None:
    """`pod<uid>` (cgroupfs driver) or `kubepods-burstable-pod<uid with underscores>.slice` (systemd driver)."""
    for part in reversed(parts):
        stem = part.split(":", 1)[0].removesuffix(".slice")
        before, marker, uid = stem.rpartition("pod")
        if not marker or (before and not ("kubepods" in before and before.endswith("-"))):
            continue
        uid = uid.replace("_", "-")
        if _is_uuid(uid) or _is_hex(uid, 32):  # a static pod's uid is the digest of its manifest
            return uid
    return None


def _unit(parts: list[str]) -> str | None:
    units = [part for part in parts if part.endswith(_UNIT_ENDS)]
    if len(units) > 1 and units[-1] == "init.scope":
        units.pop()  # the user manager itself: user@1000.service/init.scope
    return units[-1] if units else None


def _slurm_job(parts: list[str]) -> str | None:
    """`/slurm/uid_1000/job_123/step_0` (version 1), `/system.slice/slurmstepd.scope/job_123/…` (version 2)."""
    below_slurm = False
    for part in parts:
        if below_slurm and part.startswith("job_") and part[4:].isdigit():
            return part[4:]
        if part == "slurm" or part.startswith("slurm_") or part.endswith("slurmstepd.scope"):
            below_slurm = True
    return None


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and _HEX.issuperset(text)


def _is_uuid(text: str) -> bool:
    return [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12] and _HEX.issuperset(text.replace("-", ""))
