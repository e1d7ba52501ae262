"""A whole run against a scripted server: the policy, the loop, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chat_server import ChatServer, Play, serving
from given_environment import Given

from agent.events import Event, RunEnded, Stage, TextDelta
from agent.limits import Limits
from agent.llm.record import Exchange
from agent.llm.setup import open_policy
from agent.loop import run
from agent.trajectory import Trajectory, fold
from sandbox.cancellation import Cancellation
from sandbox.types import (
    Compilation,
    CompiledKernel,
    Diagnostic,
    Evaluation,
    KernelMetrics,
    LineMetrics,
    Metrics,
)

KERNEL = """\
__global__ void scale(int n, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 2.0f;
}

extern "C" void launch(int n, float *x)
{
    scale<<<(n + 255) / 256, 256>>>(n, x);
}
"""


def rewritten(plan: str, kernel: str = KERNEL, lesson: str = "") -> str:
    """An answer of the rewrite protocol."""
    said = f"LESSON: {lesson}\n" if lesson else ""
    return f"{said}PLAN: {plan}\n```cuda\n{kernel}```\n"


def variant(number: int) -> str:
    """Another right kernel."""
    return KERNEL.replace("256", str(32 * number))


@dataclass
class Played:
    events: list[Event]
    server: ChatServer
    environment: Given
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def trajectory(self) -> Trajectory:
        return fold(self.events)

    @property
    def ended(self) -> RunEnded:
        last = self.events[-1]
        assert isinstance(last, RunEnded)
        return last

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    def stages(self) -> list[str]:
        return [e.detail for e in self.events if isinstance(e, Stage) and e.stage.startswith("model")]

    def prompt(self, request: int) -> str:
        """What the model was told with the n-th request, all messages in one."""
        return "\n".join(str(m["content"]) for m in self.server.requests[request]["messages"])


def play(
    protocol: Literal["rewrite", "tools"],
    plays: Sequence[Play],
    environment: Given,
    *,
    limits: Limits | None = None,
    cancel: Cancellation | None = None,
    start_from: str | None = None,
    instruction: str = "",
    earlier: Sequence[Event] = (),
    **settings: Any,
) -> Played:
    cancel = cancel or Cancellation()
    with serving(plays) as server:
        exchanges: list[Exchange] = []
        limits = limits or Limits(turns=len(environment.outcomes))
        policy, conversation = open_policy(
            server.endpoint(**settings),
            protocol,
            environment,
            limits,
            cancel,
            start_from=start_from,
            instruction=instruction,
            record=exchanges.append,
        )
        try:
            events = list(run(policy, environment, limits, cancel, earlier=earlier))
        finally:
            conversation.close()
        played = Played(events, server, environment, exchanges)
        assert played.ended.reason != "internal_error", played.ended.message
        return played


def measured(score: float, family: str = "coalescing", line: int = 5) -> Evaluation:
    """Passed, with one weak family on one line."""
    row = LineMetrics(
        line=line,
        instructions=64,
        global_load_requests=32,
        global_load_sectors=1024,
        global_load_bytes=4096,
    )
    kernel = KernelMetrics.model_validate(
        {
            **dict.fromkeys(_ZERO, 0),
            "name": "scale",
            "grid": (4, 1, 1),
            "block": (256, 1, 1),
            "global_load_efficiency": 0.125,
            "global_store_efficiency": None,
            "active_threads_per_warp": 32.0,
            "theoretical_occupancy": 1.0,
            "occupancy_limiter": "warps",
            "flop": {"fp32": 1024},
            "arithmetic_intensity": None,
            "atomic_lanes_per_address": None,
            "lines": [row],
        }
    )
    metrics = Metrics(
        structural_score=score,
        families={family: 0.22, "occupancy": 1.0},
        measured_by="emulator",
        kernels=[kernel],
        notes=[f"Line {line} loads 32 sectors per request (4 would do).", "Nothing in the way."],
        sizes={"n": 1024},
    )
    return Evaluation(
        verdict="passed", fault=None, message="agrees", backend="emulator", target="sm_90", metrics=metrics
    )


_ZERO = (
    *("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"),
    *("shared_load_bank_conflicts", "shared_store_bank_conflicts", "instructions", "dram_bytes"),
    *("barriers_per_thread", "useless_barriers", "atomics", "warp_instruction_spread"),
    *("block_instruction_spread", "waves", "tail_fraction", "local_bytes"),
)


def refused_by_nvcc(*messages: tuple[int, str], log: str = "") -> Evaluation:
    """A compile error with these (line, message)."""
    message = f"line {messages[0][0]}: {messages[0][1]}" if messages else "nvcc failed"
    return Evaluation(
        verdict="compile_error",
        fault="candidate",
        message=message,
        backend="emulator",
        target="sm_90",
        compile=Compilation(
            seconds=0.1,
            log=log,
            diagnostics=[
                Diagnostic(file="candidate.cu", line=line, column=None, severity="error", message=text)
                for line, text in messages
            ],
            kernels=[],
        ),
    )


def compiled() -> Compilation:
    kernel = CompiledKernel(
        name="scale",
        symbol="_Z5scaleiPf",
        registers=12,
        shared_bytes=0,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )
    return Compilation(seconds=0.1, log="", diagnostics=[], kernels=[kernel])
