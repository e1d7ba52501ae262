"""Device functions that join partial results: trees in shared memory, shuffles between lanes.

`HELPERS` collects the text of those that were asked for, by name; a program emits the ones its kernels use.
"""

from __future__ import annotations

from agent.translator.c.reductions import Reduction, combine, identity
from agent.translator.c.schedules import Choice

NONE = "-1"  # a position that was never set


def partial_type(reduction: Reduction) -> str:
    return "int" if reduction.op == "any" else reduction.var.type.name


def block_reduce(r: Reduction, choice: Choice, helpers: list[str]) -> list[str]:
    """Lines that leave the block's result in thread 0's variable."""
    name = helper_name(r, choice.shuffle)
    if name not in helpers:
        helpers.append(name)
    HELPERS[name] = helper_text(r, name, choice.shuffle)
    if r.companion:
        return [f"{name}({r.var.name}, {r.companion.name});"]
    return [f"{r.var.name} = {name}({r.var.name});"]


#: Text of every helper that was asked for, by name.
HELPERS: dict[str, str] = {}


def helper_name(r: Reduction, shuffle: bool) -> str:
    word = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor", "&&": "all", "||": "any"}.get(
        r.op, r.op
    )
    if r.op == "any":
        word = "all" if r.constant == "0" else "any"
    kind = partial_type(r).replace(" ", "_")
    if r.companion:
        word += "_at" + ("" if r.strict else "_last")
        kind += "_" + r.companion.type.name.replace(" ", "_")
    return f"block_{word}_{kind}" + ("_shuffled" if shuffle else "")


def helper_text(r: Reduction, name: str, shuffle: bool) -> str:
    if r.companion:
        return _pair_helper(r, name, shuffle)
    kind = partial_type(r)
    if not shuffle:
        return f"""// The block's result, in thread 0: a tree in shared memory.
__device__ {kind} {name}({kind} value) {{
    __shared__ {kind} shared[1024];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {{
        if (threadIdx.x < half) {{
            shared[threadIdx.x] = {combine(r, "shared[threadIdx.x]", "shared[threadIdx.x + half]")};
        }}
        __syncthreads();
    }}
    const {kind} result = shared[0];
    __syncthreads();
    return result;
}}"""
    return f"""// The block's result, in thread 0: lanes pass values down, then the first warp joins.
__device__ {kind} {name}({kind} value) {{
    __shared__ {kind} warps[32];
    for (int half = 16; half > 0; half /= 2) {{
        value = {combine(r, "value", "__shfl_down_sync(0xffffffff, value, half)")};
    }}
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {{
        value = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : {identity(r)};
        for (int half = 16; half > 0; half /= 2) {{
            value = {combine(r, "value", "__shfl_down_sync(0xffffffff, value, half)")};
        }}
    }}
    __syncthreads();
    return value;
}}"""


def better(r: Reduction, value: str, at: str, other_value: str, other_at: str) -> str:
    """Whether the other pair replaces this one: as the sequential loop would have it."""
    assert r.companion is not None
    relation = ">" if r.op == "max" else "<"
    order = "<" if r.strict else ">"
    return (
        f"{other_at} != {NONE} && ({at} == {NONE} || {other_value} {relation} {value} || "
        f"({other_value} == {value} && {other_at} {order} {at}))"
    )


def _pair_helper(r: Reduction, name: str, shuffle: bool) -> str:
    assert r.companion is not None
    kind, at = partial_type(r), r.companion.type.name
    if not shuffle:
        test = better(r, "values[threadIdx.x]", "places[threadIdx.x]", "values[other]", "places[other]")
        return f"""// The block's extreme and its place, in thread 0: a tree in shared memory.
__device__ void {name}({kind} &value, {at} &place) {{
    __shared__ {kind} values[1024];
    __shared__ {at} places[1024];
    values[threadIdx.x] = value;
    places[threadIdx.x] = place;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {{
        const int other = threadIdx.x + half;
        if (threadIdx.x < half && ({test})) {{
            values[threadIdx.x] = values[other];
            places[threadIdx.x] = places[other];
        }}
        __syncthreads();
    }}
    value = values[0];
    place = places[0];
    __syncthreads();
}}"""
    test = better(r, "value", "place", "other_value", "other_place")
    step = f"""for (int half = 16; half > 0; half /= 2) {{
        const {kind} other_value = __shfl_down_sync(0xffffffff, value, half);
        const {at} other_place = __shfl_down_sync(0xffffffff, place, half);
        if ({test}) {{
            value = other_value;
            place = other_place;
        }}
    }}"""
    inner = step.replace("\n", "\n    ")
    return f"""// The block's extreme and its place, in thread 0: lanes pass pairs, then the first warp joins.
__device__ void {name}({kind} &value, {at} &place) {{
    __shared__ {kind} values[32];
    __shared__ {at} places[32];
    {step}
    if (threadIdx.x % 32 == 0) {{
        values[threadIdx.x / 32] = value;
        places[threadIdx.x / 32] = place;
    }}
    __syncthreads();
    if (threadIdx.x < 32) {{
        const bool there = threadIdx.x < blockDim.x / 32;
        value = there ? values[threadIdx.x] : {identity(r)};
        place = there ? places[threadIdx.x] : {NONE};
        {inner}
    }}
    __syncthreads();
}}"""
