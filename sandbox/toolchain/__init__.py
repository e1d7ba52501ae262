"""nvcc and gcc: finding them, and running them in the jail on sources nobody trusts.

Compilers read files their input names and can be made to work without end, so both run confined: nothing of
the machine but `/usr` and the toolkit is there to be included, and time, memory and output are limited.
"""

from sandbox.toolchain.candidate import Compiled, compile_candidate
from sandbox.toolchain.find import EXAMINED, Toolkit, find_host_compiler, find_toolkit
from sandbox.toolchain.host import HostBuild, compile_host

__all__ = [
    "EXAMINED",
    "Compiled",
    "HostBuild",
    "Toolkit",
    "compile_candidate",
    "compile_host",
    "find_host_compiler",
    "find_toolkit",
]
