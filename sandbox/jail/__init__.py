"""The jail: the only way this project runs code that it does not trust.

Every run gets a fresh set of Linux namespaces from bubblewrap and is over, with all its processes,
before `run` returns.

What it defends against: reading or writing anything on the machine but `/usr`, the loader's cache and
what the caller binds; the network (own, empty namespace); seeing, signalling or tracing outside
processes; leftovers (the process-id namespace dies on return, timeout, cancellation, and with the
parent); using up time, memory, disk, processes or the caller's own memory through output; root: a jail
started by root runs its program as an own unused user id with no capabilities, so that process limits
bite and no file on the machine is its own; and results that are traps (`read_result` takes regular
files only, follows no link and stops at a limit).

What it does not: flaws in the kernel itself (the system-call filter removes the interfaces with the
worst history, no more); side channels such as timing and caches; starving others of memory bandwidth;
learning the names and versions of what lies under `/usr`, the kernel's version and the CPU; paths of
bound folders are visible in `/proc/self/mountinfo`. Memory is watched every few hundredths of a second,
so a burst can overshoot by what can be touched in that time, bounded per process by RLIMIT_DATA. Device
files are there only where a caller names them (the GPU's replaying process, which holds no candidate's host
code). An exit status above 128 is reported as the signal it usually means.
"""

from sandbox.jail.command import Bind, python_argv
from sandbox.jail.live import Ended, run_live
from sandbox.jail.results import read_result
from sandbox.jail.run import Finished, Started, run
from sandbox.jail.status import JailStatus, status

__all__ = [
    "Bind",
    "Ended",
    "Finished",
    "JailStatus",
    "Started",
    "python_argv",
    "read_result",
    "run",
    "run_live",
    "status",
]
