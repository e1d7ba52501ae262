"""A small system-call filter, as a classic BPF program for bubblewrap's `--seccomp`.

It closes what namespaces and limits leave open: nested user namespaces (a private tmpfs of any size),
memory and messages that belong to no process (memfd, System V, POSIX queues), and kernel interfaces with
a history (bpf, io_uring, keys, perf). Everything else stays allowed: the filter is a second wall, not the
first.
"""

from __future__ import annotations

import platform
import struct

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06

_ALLOW = 0x7FFF_0000
_KILL = 0x8000_0000
_EPERM = 0x0005_0000 | 1
_ENOSYS = 0x0005_0000 | 38
_CLONE_NEWUSER = 0x1000_0000
_X32_BIT = 0x4000_0000

# Numbers that differ by architecture: unshare, mount, umount2, pivot_root, setns, keyctl, add_key,
# request_key, bpf, perf_event_open, userfaultfd, ptrace.
_DENIED = {
    "x86_64": (272, 165, 166, 155, 308, 250, 248, 249, 321, 298, 323, 101),
    "aarch64": (97, 40, 39, 41, 268, 219, 217, 218, 280, 241, 282, 117),
}
# Memory and messages of no process: memfd_create, shmget, semget, msgget, mq_open.
_UNOWNED = {"x86_64": (319, 29, 64, 68, 240), "aarch64": (279, 194, 190, 186, 180)}
# Numbers that are the same everywhere: io_uring_*, open_tree, move_mount, fsopen, fsconfig, fsmount,
# mount_setattr, memfd_secret.
_DENIED_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 442, 447)
_CLONE3 = 435
_CLONE = {"x86_64": 56, "aarch64": 220}
_AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}


def program(machine: str | None = None, *, unowned: bool = False) -> bytes | None:
    """The filter for this machine's architecture; None where we have no table for it.

    `unowned`: memory and messages that belong to no process stay allowed, as ordinary programs use them.
    """
    machine = machine or platform.machine()
    if machine not in _DENIED:
        return None
    denied = (*_DENIED[machine], *_DENIED_EVERYWHERE, *(() if unowned else _UNOWNED[machine]))
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _AUDIT_ARCH[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _EPERM)]
    for left, number in enumerate(denied):
        code.append((_EQUAL, len(denied) - left + 3, 0, number))
    code += [
        (_EQUAL, 4, 0, _CLONE3),  # glibc falls back to clone, whose flags a filter can see
        (_EQUAL, 0, 4, _CLONE[machine]),
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 2, _CLONE_NEWUSER),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ENOSYS),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
