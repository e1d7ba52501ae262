"""What only one architecture has."""

from __future__ import annotations

from instruction_forms import Table

TABLE = Table("specific", target="sm_90a")
TABLE.add("setmaxnreg.inc.sync.aligned.u32 64; mov.b32 {d}, {a}", "b32 : b32", lambda a: a)
