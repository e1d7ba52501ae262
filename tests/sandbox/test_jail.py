"""The jail against programs that try to get out, to stay, to fill and to trick. All of it runs for real."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.home import scratch
from sandbox.jail.results import NotAResult
from sandbox.limits import MIB, Limits

LIMITS = Limits(
    wall_seconds=5,
    cpu_seconds=4,
    memory_bytes=256 * MIB,
    output_bytes=8192,
    file_bytes=4 * MIB,
    processes=20,
)
OUT = Path("/out")


def run(
    code: str,
    *,
    limits: Limits = LIMITS,
    out: Path | None = None,
    cancel: Cancellation | None = None,
) -> jail.Finished:
    """`code` is Python, run by this interpreter in the jail; `out`, if given, is its writable /out."""
    return jail.run(
        [os.path.realpath(sys.executable), "-I", "-S", "-c", code],
        binds=[jail.Bind(out, OUT, writable=True)] if out else [],
        limits=limits,
        cancel=cancel or Cancellation(),
        python=True,
    )


def limited(**changes: float) -> Limits:
    return Limits(**{**vars(LIMITS), **changes})


def test_is_available_and_says_how() -> None:
    status = jail.status()
    assert status.available, f"{status.reason}: {status.how}"
    assert "bwrap" in status.reason


def test_runs_a_program_and_returns_everything_about_it() -> None:
    finished = jail.run(
        ["/bin/sh", "-c", "cat; echo $GREETING; echo bad >&2; exit 3"],
        limits=LIMITS,
        cancel=Cancellation(),
        stdin=b"given\n",
        env={"GREETING": "hello"},
    )
    assert finished.stdout == b"given\nhello\n"
    assert finished.stderr == b"bad\n"
    assert (finished.returncode, finished.signal, finished.reason) == (3, None, "exited")


def test_costs_little() -> None:
    best = min(jail.run(["/bin/true"], limits=LIMITS, cancel=Cancellation()).seconds for _ in range(5))
    assert best < 0.05


def test_a_signal_is_told_from_an_exit() -> None:
    finished = run("import os; os.kill(os.getpid(), 11)")
    assert (finished.returncode, finished.signal) == (None, 11)


def test_output_arrives_while_the_program_runs() -> None:
    heard: list[tuple[float, str]] = []
    jail.run(
        ["/bin/sh", "-c", "echo one; sleep 0.3; echo two"],
        limits=LIMITS,
        cancel=Cancellation(),
        on_output=lambda text: heard.append((time.monotonic(), text)),
    )
    assert [text for _, text in heard] == ["one\n", "two\n"]
    assert heard[1][0] - heard[0][0] > 0.2


def test_passes_open_files() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        jail.run(
            [
                os.path.realpath(sys.executable),
                "-I",
                "-S",
                "-c",
                f"import os; os.write({writer}, b'through\\n')",
            ],
            limits=LIMITS,
            cancel=Cancellation(),
            pass_fds=[writer],
            python=True,
        )
        assert os.read(reader, 100) == b"through\n"
    finally:
        os.close(reader)
        os.close(writer)


def test_runs_a_module_of_this_project() -> None:
    finished = jail.run(
        jail.python_argv("sandbox.jail.seccomp"), limits=LIMITS, cancel=Cancellation(), python=True
    )
    assert finished.ok, finished.stderr


def test_leaks_no_descriptors_and_no_processes_of_its_own() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        jail.run(["/bin/true"], limits=LIMITS, cancel=Cancellation())
    assert len(os.listdir("/proc/self/fd")) == before
    finished = run("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])")
    assert finished.stdout == b"[0, 1, 2]\n"


# Getting out.


def test_sees_nothing_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("stolen answers")
    project = Path(__file__).parent.parent.parent
    wanted = [
        "/etc/passwd",
        "/etc/shadow",
        "/mnt",
        str(secret),
        str(project / "tests"),
        "/sys",
        "/var",
        "/run",
    ]
    wanted = [path for path in wanted if not project.is_relative_to(path)]  # else seen
    finished = run(f"import os\nfor path in {wanted}: print(os.path.exists(path))")
    assert finished.stdout.split() == [b"False"] * len(wanted)


def test_sees_of_the_folders_above_this_project_only_the_way_down() -> None:
    """A checkout lies anywhere, often below /home: what lies beside it is nobody's business in there."""
    project = Path(__file__).parent.parent.parent
    above = [path for path in project.parents if path != Path("/")]
    finished = run(f"import os\nfor path in {[*map(str, above)]}: print(*os.listdir(path))")
    seen = [line.split() for line in finished.stdout.decode().splitlines()]
    assert seen == [[path.name] for path in [project, *above][: len(above)]]


def test_has_an_empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_LLM_API_KEY", "a secret")
    finished = run("import os; print(sorted(os.environ)); print(open('/proc/1/environ').read())")
    assert b"API_KEY" not in finished.stdout + finished.stderr
    assert b"a secret" not in finished.stdout


def test_has_no_network() -> None:
    finished = run(
        "import socket\n"
        "print(sorted(name for _, name in socket.if_nameindex()))\n"
        "s = socket.socket(); s.settimeout(1)\n"
        "try: s.connect(('1.1.1.1', 53)); print('connected')\n"
        "except OSError as error: print('refused')\n"
    )
    assert finished.stdout in (b"['lo']\nrefused\n", b"['lo', 'sit0']\nrefused\n")


def test_cannot_reach_a_server_on_this_machine() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        finished = run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)")
    assert b"ConnectionRefusedError" in finished.stderr


def test_is_not_root_and_cannot_become_it() -> None:
    finished = run(
        "import os\n"
        "status = open('/proc/self/status').read()\n"
        "caps = {l.split()[1] for l in status.splitlines() if l.startswith('Cap')}\n"
        "print(os.getuid() != 0, caps, 'NoNewPrivs:\\t1' in status)\n"
        "try: os.setuid(0); print('root')\n"
        "except OSError: print('no')\n"
        "try: os.chroot('/usr'); print('chroot')\n"
        "except OSError: print('no')\n"
    )
    assert finished.stdout == b"True {'0000000000000000'} True\nno\nno\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a jail a user id of its own")
def test_under_root_every_jail_is_another_user() -> None:
    seen = {run("import os; print(os.getuid(), os.getgid(), os.getgroups())").stdout for _ in range(3)}
    assert len(seen) == 3


def test_cannot_make_namespaces_or_memory_that_belongs_to_nobody() -> None:
    finished = run(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for call in (lambda: libc.unshare(0x10000000), lambda: libc.unshare(0x00020000),\n"
        "             lambda: libc.memfd_create(b'x', 0), lambda: libc.shmget(0, 1 << 30, 0o1600),\n"
        "             lambda: libc.msgget(0, 0o1600), lambda: libc.semget(0, 1, 0o1600),\n"
        "             lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)):\n"
        "    print(call(), ctypes.get_errno())\n"
    )
    assert finished.stdout == b"-1 1\n" * 7


def test_a_device_is_there_only_where_it_is_named() -> None:
    """With it comes what its driver needs: shared memory, memory of no process, endless reservations."""
    ours = next((path for path in map(Path, ("/dev/fuse", "/dev/kvm", "/dev/autofs")) if path.exists()), None)
    if ours is None:
        pytest.skip("this machine has no device file but those that every jail has")
    code = f"""
import os, resource
print(os.path.exists({str(ours)!r}))
print(resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY)
for name, do in (("memfd", lambda: os.memfd_create("x")), ("shm", lambda: open("/dev/shm/x", "w"))):
    try:
        do()
        print(name)
    except OSError:
        print("no", name)
"""
    without = run(code)
    assert without.stdout.split(b"\n")[:4] == [b"False", b"False", b"no memfd", b"no shm"], without
    argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", code]
    named = jail.run(argv, limits=LIMITS, cancel=Cancellation(), python=True, devices=[ours])
    assert named.stdout.split(b"\n")[:4] == [b"True", b"True", b"memfd", b"shm"], named


def test_sees_and_signals_no_outside_process() -> None:
    finished = run(
        "import os\n"
        "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == sorted({1, os.getpid()}))\n"
        f"try: os.kill({os.getpid()}, 9); print('killed')\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    assert finished.stdout == b"True\nProcessLookupError\n"


def test_writes_nowhere_but_where_it_may(tmp_path: Path) -> None:
    finished = run(
        "for path in ('/x', '/usr/x', '/etc/x', '/dev/x', '/dev/shm/x', '/proc/sys/kernel/core_pattern',\n"
        "             '/tmp/x', '/out/x'):\n"
        "    try: open(path, 'w').write('x'); print(path)\n"
        "    except OSError: pass\n",
        out=tmp_path,
    )
    assert finished.stdout == b"/tmp/x\n/out/x\n"


# Staying.


def test_orphans_die_with_the_jail(tmp_path: Path) -> None:
    finished = run(
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for fd in (0, 1, 2): os.close(fd)\n"
        "        while True:\n"
        "            with open('/out/alive', 'a') as f: f.write('x')\n"
        "            time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "time.sleep(0.2)\n",
        out=tmp_path,
    )
    assert finished.ok
    size = (tmp_path / "alive").stat().st_size
    assert size > 0
    time.sleep(0.2)
    assert (tmp_path / "alive").stat().st_size == size


def test_the_jail_dies_with_whoever_started_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    code = (
        "import sys; from pathlib import Path; from sandbox import jail, limits, cancellation\n"
        "script = 'while true; do echo x >> /out/alive; sleep 0.01; done'\n"
        "bind = jail.Bind(Path(sys.argv[1]), Path('/out'), writable=True)\n"
        "jail.run(['/bin/sh', '-c', script], binds=[bind], limits=limits.RECORD, "
        "cancel=cancellation.Cancellation())\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code, str(out)])
    try:
        deadline = time.monotonic() + 20
        while not (out / "alive").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        starter.kill()
        starter.wait()
    time.sleep(0.3)
    size = (out / "alive").stat().st_size
    time.sleep(0.3)
    assert (out / "alive").stat().st_size == size


def test_a_ctrl_c_at_the_terminal_is_the_starters_to_answer(tmp_path: Path) -> None:
    """A terminal signals its whole foreground group. A jail hit by that would look like one not set up."""
    out = tmp_path / "out"
    out.mkdir()
    code = (
        "import signal, sys; from pathlib import Path; from sandbox import jail, limits, cancellation\n"
        "cancel = cancellation.Cancellation()\n"
        "signal.signal(signal.SIGINT, lambda *_: cancel.set())\n"
        "bind = jail.Bind(Path(sys.argv[1]), Path('/out'), writable=True)\n"
        "script = 'touch /out/alive; sleep 20'\n"
        "done = jail.run(['/bin/sh', '-c', script], binds=[bind], limits=limits.RECORD, cancel=cancel)\n"
        "print(done.reason)\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    try:
        deadline = time.monotonic() + 20
        while not (out / "alive").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(starter.pid, signal.SIGINT)
        said, _ = starter.communicate(timeout=10)
    finally:
        starter.kill()
        starter.wait()
    assert (starter.returncode, said) == (0, "cancelled\n")


def test_time_is_up_also_for_those_who_ignore_signals() -> None:
    finished = run(
        "import signal, time\n"
        "for s in (2, 15): signal.signal(s, signal.SIG_IGN)\n"
        "print('on', flush=True); time.sleep(60)",
        limits=limited(wall_seconds=0.5),
    )
    assert (finished.reason, finished.returncode, finished.stdout) == ("timeout", None, b"on\n")
    assert finished.seconds < 1.0


def test_processor_time_is_limited() -> None:
    finished = run("while True: pass", limits=limited(cpu_seconds=1, wall_seconds=60))
    assert finished.reason == "timeout"
    assert finished.seconds < 50


def test_cancelling_takes_less_than_a_tenth_of_a_second() -> None:
    cancel = Cancellation()
    at: list[float] = []

    def set_later() -> None:
        time.sleep(0.3)
        at.append(time.monotonic())
        cancel.set()

    thread = threading.Thread(target=set_later)
    thread.start()
    finished = run(
        "import os, time\nfor _ in range(5): os.fork()\ntime.sleep(60)",
        cancel=cancel,
        limits=limited(processes=64),
    )
    ended = time.monotonic()
    thread.join()
    assert finished.reason == "cancelled"
    assert ended - at[0] < 0.1


def test_an_outside_flag_cancels_too_and_is_not_asked_all_the_time() -> None:
    asked: list[float] = []

    def probe() -> bool:
        asked.append(time.monotonic())
        return len(asked) >= 3

    finished = run("import time; time.sleep(60)", cancel=Cancellation(probe, interval=0.1))
    assert finished.reason == "cancelled"
    assert asked[2] - asked[0] >= 0.2


# Filling.


def test_a_fork_bomb_fizzles() -> None:
    finished = run(
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while True:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        made += 1\n"
        "except OSError as error: print(made, type(error).__name__)\n"
    )
    made, error = finished.stdout.split()
    assert 5 <= int(made) <= LIMITS.processes
    assert error == b"BlockingIOError"


def test_one_process_cannot_take_more_memory_than_allowed() -> None:
    finished = run("x = bytearray(1 << 30)")
    assert finished.reason == "exited"
    assert b"MemoryError" in finished.stderr


def test_many_processes_together_neither() -> None:
    finished = run(
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        x = b'x' * (100 << 20); time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    assert finished.reason == "memory"
    assert finished.seconds < 4


def test_an_address_range_may_be_reserved() -> None:
    finished = run("import mmap; print(len(mmap.mmap(-1, 1 << 37, flags=0x4022, prot=0)))")
    assert finished.stdout == b"137438953472\n"


def test_a_flood_of_output_ends_the_jail_and_keeps_head_and_tail() -> None:
    finished = run("import sys\nsys.stdout.write('head')\nwhile True: sys.stdout.write('x' * 4096)")
    assert finished.reason == "output"
    assert finished.stdout.startswith(b"head")
    assert len(finished.stdout) < LIMITS.output_bytes + 100
    assert b"bytes left out" in finished.stdout


def test_long_output_is_cut_in_its_middle() -> None:
    finished = run("print('first'); print('x' * 50_000); print('last')")
    assert finished.ok
    assert finished.stdout.startswith(b"first\n")
    assert finished.stdout.endswith(b"last\n")
    assert len(finished.stdout) < LIMITS.output_bytes + 100


def test_files_are_limited_each_and_together(tmp_path: Path) -> None:
    one = run("open('/out/big', 'wb').write(b'x' * (64 << 20))", out=tmp_path)
    assert one.signal == 25 or b"File too large" in one.stderr
    assert (tmp_path / "big").stat().st_size <= LIMITS.file_bytes
    many = run(
        "import time\nfor i in range(100): open(f'/out/{i}', 'wb').write(b'x' * (1 << 20)); time.sleep(0.01)",
        out=tmp_path,
    )
    assert many.reason == "output"


def test_tmp_is_limited() -> None:
    finished = run("for i in range(100): open(f'/tmp/{i}', 'wb').write(b'x' * (1 << 20))", limits=LIMITS)
    assert b"No space left" in finished.stderr


# Tricking whoever reads the results.


def test_results_are_plain_files_only(tmp_path: Path) -> None:
    with scratch("test") as out:
        finished = run(
            "import os\n"
            "os.symlink('/etc/shadow', '/out/link'); os.mkfifo('/out/fifo'); os.mkdir('/out/folder')\n"
            "os.symlink('/etc', '/out/elsewhere'); os.mkdir('/out/deep')\n"
            "open('/out/plain', 'w').write('fine'); open('/out/deep/plain', 'w').write('deep')\n"
            "open('/out/large', 'wb').truncate(4 << 20)\n",
            out=out,
        )
        assert finished.ok, finished.stderr
        assert jail.read_result(out / "plain", 100) == b"fine"
        assert jail.read_result(out / "deep" / "plain", 100, within=out) == b"deep"
        for trap in ("link", "fifo", "folder", "large"):
            with pytest.raises(NotAResult):
                jail.read_result(out / trap, 1000)
        with pytest.raises(NotAResult):
            jail.read_result(out / "elsewhere" / "hostname", 1000, within=out)
        with pytest.raises(FileNotFoundError):
            jail.read_result(out / "missing", 1000)


def test_writable_folders_come_back_to_their_owner(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("before")
    target = tmp_path.parent / "untouched"
    target.write_text("mine")
    owner = target.stat().st_uid
    run(
        "import os\n"
        "open('/out/given', 'w').write('after'); os.mkdir('/out/new'); open('/out/new/file', 'w').close()\n"
        f"os.symlink({str(target)!r}, '/out/new/link')\n",
        out=tmp_path,
    )
    assert (tmp_path / "given").read_text() == "after"
    for path in (tmp_path, tmp_path / "given", tmp_path / "new" / "file", target):
        assert path.stat().st_uid == owner == os.geteuid()


def test_a_missing_bind_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run("", out=tmp_path / "nothing")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_an_ordinary_user_gets_a_jail_as_well(tmp_path: Path) -> None:
    project = Path(__file__).parent.parent.parent
    packages = [path for path in sys.path if path.endswith("site-packages")]
    system = shutil.which("python3", path="/usr/bin")
    nobody = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", str(system), "-B", "-c"]
    environment = {"PYTHONPATH": ":".join([str(project), *packages]), "PATH": "/usr/bin:/bin"}
    code = (
        "import sandbox.jail as jail, sandbox.limits as limits, sandbox.cancellation as c\n"
        "print(jail.status().available, jail.status().reason)\n"
        "tries = ['/bin/sh', '-c', 'id -u; ls /home /root; unshare -U id || echo no']\n"
        "print(jail.run(tries, limits=limits.RECORD, cancel=c.Cancellation()).stdout)\n"
    )
    can_import = subprocess.run(
        [*nobody, "import sandbox.jail"], env=environment, cwd="/", capture_output=True
    )
    if system is None or can_import.returncode != 0:
        pytest.skip("no interpreter here that an ordinary user could run with this project's packages")
    said = subprocess.run([*nobody, code], env=environment, cwd="/", capture_output=True, text=True)
    assert said.stdout.startswith("True"), said
    assert "b'1000\\nno\\n'" in said.stdout
