"""Times that no honest kernel can have: looked at by a person, never rewarded."""

from __future__ import annotations

from sandbox.targets import Target

#: A speedup beyond this over a good baseline is more often a trick than a discovery.
MOST_SPEEDUP = 10.0


def implausible(us: float, *, bytes_read: int, target: Target, speedup: float | None = None) -> str:
    """Why a time of `us` microseconds cannot be believed as it stands; empty where it can.

    `bytes_read`: what the kernel must have fetched from device memory at least. The caches were flushed, so
    they were in none; written bytes may still be in one when the clock stops, and do not count. The bandwidth
    is the data sheet's: no kernel beats it.
    """
    floor = bytes_read / target.dram_bandwidth * 1e6
    if us < floor:
        return (
            f"{us:.2f} us for {bytes_read:,} bytes that must be read is faster than the memory of "
            f"{target.product} can be ({floor:.2f} us)"
        )
    if speedup is not None and speedup > MOST_SPEEDUP:
        return f"{speedup:.1f} times as fast as the baseline is beyond what is believed without a look"
    return ""
