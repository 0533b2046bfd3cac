"""Layouts of `/proc/PID/cgroup` as real machines write them, and near misses."""

from __future__ import annotations

import pytest

from gpusnap.collect.cgroup import is_root_only, parse_cgroup

ID = "3fd1f8e8b5a2c4d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e"
OUTER = "00aa11bb22cc33dd44ee55ff66007711223344556677889900aabbccddeeff00"
UID = "7b1f5c1e-3a55-4d9e-9b7f-6f1f2f6f8a01"
UID_ = UID.replace("-", "_")
MIRROR = "d41d8cd98f00b204e9800998ecf8427e"
NODE = "kubelet-kubepods"


def found(raw: str) -> dict[str, str]:
    return {leaf: value for leaf, value in parse_cgroup(raw.encode()).items() if value is not None}


def v1(path: str, systemd: str | None = None) -> str:
    """The hierarchies of a version 1 host; `systemd` where the service manager's own differs."""
    controllers = ("memory", "cpuset", "cpu,cpuacct", "devices", "freezer", "pids", "net_cls,net_prio")
    lines = [f"{number}:{name}:{path}" for number, name in enumerate(controllers, 2)]
    return "\n".join([*reversed(lines), f"1:name=systemd:{path if systemd is None else systemd}", ""])


LAYOUTS = {
    "docker, version 1": (v1(f"/docker/{ID}"), {"container_id": ID}),
    "docker, version 2, cgroupfs": (f"0::/docker/{ID}\n", {"container_id": ID}),
    "docker, version 2, systemd": (
        f"0::/system.slice/docker-{ID}.scope\n",
        {"container_id": ID, "systemd_unit": f"docker-{ID}.scope"},
    ),
    "docker, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope\n",
        {"container_id": ID, "systemd_unit": f"docker-{ID}.scope"},
    ),
    "docker in docker": (v1(f"/docker/{OUTER}/docker/{ID}"), {"container_id": ID}),
    "docker with a parent group": (v1(f"/jobs/alice/{ID}"), {"container_id": ID}),
    "podman, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n",
        {"container_id": ID, "systemd_unit": f"libpod-{ID}.scope"},
    ),
    "podman, root": (
        f"0::/machine.slice/libpod-{ID}.scope\n",
        {"container_id": ID, "systemd_unit": f"libpod-{ID}.scope"},
    ),
    "podman, cgroupfs": (v1(f"/libpod_parent/libpod-{ID}"), {"container_id": ID}),
    "podman in a pod": (
        f"0::/machine.slice/machine-libpod_pod_{OUTER}.slice/libpod-{ID}.scope\n",
        {"container_id": ID, "systemd_unit": f"libpod-{ID}.scope"},
    ),
    "conmon is not in its container": (
        f"0::/machine.slice/libpod-conmon-{ID}.scope\n",
        {"systemd_unit": f"libpod-conmon-{ID}.scope"},
    ),
    "kubernetes, cgroupfs, version 1": (
        v1(f"/kubepods/burstable/pod{UID}/{ID}"),
        {"container_id": ID, "pod_uid": UID},
    ),
    "kubernetes, cgroupfs, guaranteed": (v1(f"/kubepods/pod{UID}/{ID}"), {"container_id": ID, "pod_uid": UID}),
    "kubernetes, systemd, containerd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope\n",
        {"container_id": ID, "pod_uid": UID, "systemd_unit": f"cri-containerd-{ID}.scope"},
    ),
    "kubernetes, systemd, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{ID}.scope\n",
        {"container_id": ID, "pod_uid": UID, "systemd_unit": f"cri-containerd-{ID}.scope"},
    ),
    "kubernetes, CRI-O": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-{ID}.scope/container\n",
        {"container_id": ID, "pod_uid": UID, "systemd_unit": f"crio-{ID}.scope"},
    ),
    "kubernetes, CRI-O's conmon": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-conmon-{ID}.scope\n",
        {"pod_uid": UID, "systemd_unit": f"crio-conmon-{ID}.scope"},
    ),
    "kubernetes, dockershim": (
        v1(f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/docker-{ID}.scope"),
        {"container_id": ID, "pod_uid": UID, "systemd_unit": f"docker-{ID}.scope"},
    ),
    "kubernetes, containerd, drivers at odds": (
        f"0::/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{ID}\n",
        {"container_id": ID, "pod_uid": UID, "systemd_unit": "containerd.service"},
    ),
    "kubernetes, a static pod": (
        v1(f"/kubepods/burstable/pod{MIRROR}/{ID}"),
        {"container_id": ID, "pod_uid": MIRROR},
    ),
    "kind: kubernetes in docker": (
        f"0::/docker/{OUTER}/kubelet.slice/{NODE}.slice/{NODE}-pod{UID_}.slice/cri-containerd-{ID}.scope\n",
        {"container_id": ID, "pod_uid": UID, "systemd_unit": f"cri-containerd-{ID}.scope"},
    ),
    "seen from another cgroup namespace": (f"0::/../../pod{UID}/{ID}\n", {"container_id": ID, "pod_uid": UID}),
    "ECS on EC2": (v1(f"/ecs/{MIRROR}/{ID}"), {"container_id": ID}),
    "ECS on Fargate": (v1(f"/ecs/{MIRROR}/{MIRROR}-1206535166"), {"container_id": f"{MIRROR}-1206535166"}),
    "LXC 4": ("0::/lxc.payload.web-1/system.slice/ollama.service\n",
              {"container_id": "web-1", "systemd_unit": "ollama.service"}),
    "LXC 2": (v1("/lxc/web-1"), {"container_id": "web-1"}),
    "LXC's monitor": ("0::/lxc.monitor.web-1\n", {}),
    "systemd-nspawn": (
        "0::/machine.slice/systemd-nspawn@build\\x2d1.service/payload/system.slice/cron.service\n",
        {"container_id": "build-1", "systemd_unit": "cron.service"},
    ),
    "a virtual machine is no container": (
        "0::/machine.slice/machine-qemu\\x2d1\\x2dwin11.scope/libvirt/emulator\n",
        {"systemd_unit": "machine-qemu\\x2d1\\x2dwin11.scope"},
    ),
    "systemd inside docker": (
        f"0::/system.slice/docker-{ID}.scope/system.slice/sshd.service\n",
        {"container_id": ID, "systemd_unit": "sshd.service"},
    ),
    "a service": ("0::/system.slice/ollama.service\n", {"systemd_unit": "ollama.service"}),
    "a template": ("0::/system.slice/system-getty.slice/getty@tty1.service\n",
                   {"systemd_unit": "getty@tty1.service"}),
    "a login": ("0::/user.slice/user-1000.slice/session-3.scope\n", {"systemd_unit": "session-3.scope"}),
    "a desktop program": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-4242.scope\n",
        {"systemd_unit": "app-gnome-firefox-4242.scope"},
    ),
    "the user manager itself": (
        "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
        {"systemd_unit": "user@1000.service"},
    ),
    "systemd itself": ("0::/init.scope\n", {"systemd_unit": "init.scope"}),
    "version 1 with a unified hierarchy beside it": (
        v1("/user.slice", "/user.slice/user-1000.slice/session-3.scope")
        + "0::/user.slice/user-1000.slice/session-3.scope\n",
        {"systemd_unit": "session-3.scope"},
    ),
    "a removed group": ("0::/system.slice/ollama.service (deleted)\n", {"systemd_unit": "ollama.service"}),
    "Slurm, version 1": (
        v1("/slurm/uid_1000/job_123/step_0/task_0", "/system.slice/slurmd.service"),
        {"slurm_job_id": "123", "systemd_unit": "slurmd.service"},
    ),
    "Slurm, version 1, several daemons": (
        v1("/slurm_node7/uid_1000/job_9/step_batch", "/system.slice/slurmd.service"),
        {"slurm_job_id": "9", "systemd_unit": "slurmd.service"},
    ),
    "Slurm, version 2": (
        "0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special\n",
        {"slurm_job_id": "4711", "systemd_unit": "slurmstepd.scope"},
    ),
    "Slurm, version 2, several daemons": (
        "0::/system.slice/node7_slurmstepd.scope/job_4711/step_0/user/task_0\n",
        {"slurm_job_id": "4711", "systemd_unit": "node7_slurmstepd.scope"},
    ),
    "nothing": ("0::/\n", {}),
    "a kernel thread, version 1": (v1("/"), {}),
    # Near misses
    "a job that is not Slurm's": ("0::/batch/job_123/step_0\n", {}),
    "a unit of that name": ("0::/system.slice/slurm_job_12.service\n", {"systemd_unit": "slurm_job_12.service"}),
    "63 digits": (f"0::/docker/{ID[:-1]}\n", {}),
    "65 digits": (f"0::/docker/{ID}a\n", {}),
    "64 letters that are no digits": (f"0::/docker/{'g' * 64}\n", {}),
    "a pod's name": ("0::/podinfo/pod-web\n", {}),
    "a unit named after a pod": (
        f"0::/system.slice/tripod{UID}.service\n",
        {"systemd_unit": f"tripod{UID}.service"},
    ),
    "garbage": ("\x00\x01:::\n0:\n::\nfoo\n", {}),
    "empty": ("", {}),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_gives_these_ids_and_no_others(layout: str) -> None:
    raw, expected = LAYOUTS[layout]
    assert found(raw) == expected


def test_report_092_the_pod_is_told_by_the_path_alone() -> None:
    """vLLM's EngineCore drops POD_NAME; nothing here has an environment to read."""
    path = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope"
    for raw in (f"0::{path}\n", v1(path)):
        assert found(raw)["pod_uid"] == UID


@pytest.mark.parametrize(
    ("raw", "only"),
    [(b"0::/\n", True), (v1("/").encode(), True), (b"0::/init.scope\n", False), (b"0::/..\n", False)],
)
def test_the_root_path_alone_is_what_a_cgroup_namespace_leaves(raw: bytes, only: bool) -> None:
    assert is_root_only(raw) is only
