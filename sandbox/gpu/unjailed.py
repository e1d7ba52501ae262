"""The replaying process without a jail: to find out, on a new kind of machine, whether the jail is what the
driver stumbles over. Evaluations made so are marked `jailed: false`."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Self

from sandbox.cancellation import Cancellation
from sandbox.jail import Finished

_TICK = 0.02


class Unjailed:
    """As much of `jail.Started` as a session needs."""

    def __init__(self, argv: Sequence[str], pass_fds: Sequence[int], env: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=pass_fds,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/tmp", **env},
            process_group=0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._said.close()

    def finish(self, cancel: Cancellation) -> Finished:
        cancelled = False
        while self._process.poll() is None:
            if cancel.is_set and not cancelled:
                cancelled = True
                self._process.kill()
            time.sleep(_TICK)
        status = self._process.returncode
        self._said.seek(0)
        return Finished(
            returncode=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            stdout=b"",
            stderr=self._said.read(),
            seconds=time.monotonic() - self._began,
            reason="cancelled" if cancelled else "exited",
        )
