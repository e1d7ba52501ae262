"""Verdicts and metrics in words, for an agent that has to act on them."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # Verdicts.
    "passed": (
        "Right on every secret draw: within twice the reference's own error, nothing touched that was "
        "not to be. Read the metrics next: the family with the lowest value is where to gain."
    ),
    "compile_error": "nvcc did not take the source. `compile.diagnostics` has lines and messages.",
    "launch_error": (
        "`launch` failed or started kernels that cannot run: a grid or block that is too large, too "
        "much shared memory, an error of the runtime that it was told."
    ),
    "wrong_result": (
        "Some element differs from the reference by more than is allowed. "
        "`verification.first_mismatch` has the element, its inputs and the sizes. Sizes are secret "
        "and not multiples of anything: look at guards and tails first."
    ),
    "runtime_error": (
        "A kernel did what it may not: out-of-bounds or misaligned access, a read of memory nobody "
        "wrote, a race, a barrier that not all threads reach. The message names line, block and "
        "thread."
    ),
    "timeout": "It took far longer than the reference needs, or never ended.",
    "unsupported": (
        "It does something that cannot be judged here. The message names it; another way is needed."
    ),
    "rule_violation": ("It breaks a rule of judging, for example by calling a library that is not allowed."),
    "degenerate_task": (
        "The task cannot tell right from wrong: a constant or zeros would pass. Its inputs have to be "
        "changed."
    ),
    "internal_error": "Kernelwright's own fault. The candidate is not to blame.",
    # Families of the structural score, each from 0 to 1.
    "structural_score": (
        "Weighted mean of the families, 0 to 100. How well a kernel is built: never a time."
    ),
    "coalescing": (
        "Sectors of 32 bytes that the loads and stores of warps need over those they move. Let "
        "neighbouring lanes use neighbouring addresses; go through shared memory where the pattern "
        "forbids it."
    ),
    "shared_memory": (
        "Wavefronts of shared memory needed over those taken. Below 1 there are bank conflicts: pad "
        "the row of a tile by one element, or permute its columns."
    ),
    "occupancy": (
        "How many warps an SM can hold, of the most possible. `occupancy_limiter` says what limits; "
        "`occupancy_next_step` what would help."
    ),
    "intensity": (
        "How close the traffic and the instructions are to what the work needs at least. Tiling, "
        "results in registers, wide loads and fused kernels raise it."
    ),
    "divergence": (
        "Active lanes per warp instruction, of 32. Branch by warp instead of by thread; keep idle "
        "lanes out of loops."
    ),
    "synchronisation": (
        "Work over work and waste by barriers that order nothing and atomics that meet on one "
        "address. Reduce in registers or shared memory first, then one atomic a block."
    ),
    "balance": (
        "Whether the work is cut finely and evenly over warps. A thread a row is too coarse where "
        "rows are long: give a warp or a block to each."
    ),
    "overheads": (
        "Launches, copies and spilled registers. Fuse small kernels; use fewer registers per thread."
    ),
    # Numbers of a kernel.
    "global_load_requests": "Warp-wide load instructions on global memory.",
    "global_load_sectors": (
        "Sectors of 32 bytes that these moved; 4 a request are ideal for 4-byte elements."
    ),
    "global_store_requests": "Warp-wide store instructions on global memory.",
    "global_store_sectors": "Sectors of 32 bytes that these moved.",
    "global_load_efficiency": "Useful bytes over moved bytes of global loads; 1 is ideal.",
    "global_store_efficiency": "Useful bytes over moved bytes of global stores; 1 is ideal.",
    "shared_load_bank_conflicts": "Extra wavefronts of shared loads, since lanes met on a bank.",
    "shared_store_bank_conflicts": "Extra wavefronts of shared stores, since lanes met on a bank.",
    "instructions": "Warp instructions that were executed.",
    "active_threads_per_warp": "Lanes at work per instruction; 32 without divergence.",
    "theoretical_occupancy": (
        "Warps that fit on an SM by registers, shared memory and block size, of the most."
    ),
    "occupancy_limiter": (
        "What keeps more warps from fitting: registers, shared_memory, block_size, warps, blocks."
    ),
    "occupancy_next_step": "What would let an SM hold more warps.",
    "flop": "Floating-point operations by precision, counted.",
    "dram_bytes": "Distinct sectors touched times 32: the least traffic there can be. An estimate.",
    "reread_factor": "Sectors requested over distinct sectors: how often data is asked for again.",
    "arithmetic_intensity": "FLOP per byte of DRAM traffic, an estimate.",
    "ridge_intensity": "FLOP per byte from which on arithmetic is what limits.",
    "roof": "Which roof binds: dram_bandwidth, or arithmetic of a precision.",
    "attainable_share_of_peak": "Height of the roofline at this intensity, of the peak.",
    "barriers_per_thread": "Barriers that a thread passes.",
    "barriers_executed": "Block-wide barriers that were executed.",
    "useless_barriers": "Of those, the ones that ordered nothing: no access before met one after.",
    "atomics": "Warp-wide atomic instructions.",
    "atomic_lanes_per_address": "Lanes that meet on one address in an atomic; 1 is free of contention.",
    "warp_instruction_spread": "Coefficient of variation of instructions over warps; 0 is even.",
    "block_instruction_spread": "The same over blocks.",
    "waves": "How often the grid fills the GPU.",
    "tail_fraction": "Idle share of the last wave.",
    "local_bytes": ("Local memory per thread: spilled registers and arrays that are indexed by variables."),
}


def explained(word: str) -> str | None:
    """What a verdict or a number means and what to do about it; None for an unknown word."""
    return WORDS.get(word.strip().lower().replace(" ", "_").replace("-", "_"))
