"""Cases as a job of the plain executable (`kernels/runner.cu`): a text of words, the bytes that arrays begin
with, and a file for what is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sandbox.agreement.case import Array, Case, In, Out, size


@dataclass(frozen=True)
class Job:
    cases: Sequence[Case]
    words: Path
    data: Path
    output: Path

    @property
    def arguments(self) -> list[str]:
        return [str(self.words), str(self.data), str(self.output)]

    def outputs(self) -> list[dict[str, Array]]:
        """By case, after the executable ran. Raises RuntimeError where it left too few bytes or too many."""
        content = self.output.read_bytes()
        wanted = sum(size(array) for case in self.cases for array in case.outputs)
        if len(content) != wanted:
            raise RuntimeError(f"the suite's executable left {len(content)} bytes of output, not {wanted}")
        found, at = [], 0
        for case in self.cases:
            back = {}
            for array in case.outputs:
                back[array.name] = content[at : at + size(array)]
                at += size(array)
            found.append(case.read(back))
        return found


def write(cases: Sequence[Case], folder: Path) -> Job:
    job = Job(cases, folder / "job", folder / "data", folder / "output")
    data = bytearray()
    lines = []
    for case in cases:
        words = [case.name, case.kernel, *case.grid, *case.block, case.shared, len(case.arguments)]
        for argument in case.arguments:
            if isinstance(argument, np.generic):
                words += ["value", argument.tobytes().hex()]
                continue
            at = -1 if isinstance(argument, Out) else len(data)
            data += b"" if isinstance(argument, Out) else argument.values.tobytes()
            words += ["array", size(argument), at, int(not isinstance(argument, In))]
        lines.append(" ".join(map(str, words)))
    job.words.write_text("\n".join(lines) + "\n")
    job.data.write_bytes(data)
    return job
