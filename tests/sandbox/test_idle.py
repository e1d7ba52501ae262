"""Which kernels of a plan are idle: the rule alone, on plans whose outcome is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.idle import MOST_KERNELS, idle_kernels
from sandbox.plan import Launch, LaunchPlan

Outputs = Mapping[str, bytes]


def plan_of(*kernels: str) -> LaunchPlan:
    return LaunchPlan(
        operations=[
            Launch(module=0, kernel=name, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, parameters="")
            for name in kernels
        ]
    )


def device(
    rule: Callable[[list[str]], Outputs | None], asked: list[list[str]]
) -> Callable[..., Outputs | None]:
    """A device on which the outcome depends on which kernels run, in order."""

    def replay(plan: LaunchPlan) -> Outputs | None:
        names = [launch.kernel for launch in plan.launches]
        asked.append(names)
        return rule(names)

    return replay


def test_a_kernel_that_the_outputs_do_not_need() -> None:
    asked: list[list[str]] = []
    replay = device(lambda names: {"y": b"right" if "work" in names else b"poison"}, asked)
    assert idle_kernels(plan_of("show", "work", "show"), {"y": b"right"}, replay) == {"show"}
    assert asked == [["work"]]  # that the last one left is needed is known


def test_a_step_that_others_need() -> None:
    replay = device(lambda names: {"y": b"right"} if names == ["first", "second"] else None, [])
    assert idle_kernels(plan_of("first", "second"), {"y": b"right"}, replay) == set()


def test_of_two_that_do_the_same_one_remains() -> None:
    replay = device(lambda names: {"y": b"right" if names else b"poison"}, [])
    assert idle_kernels(plan_of("a", "b"), {"y": b"right"}, replay) == {"a"}


def test_one_kernel_and_very_many_cost_no_replay() -> None:
    asked: list[list[str]] = []
    replay = device(lambda names: {}, asked)
    assert idle_kernels(plan_of("only", "only"), {}, replay) == set()
    assert idle_kernels(plan_of(*(f"k{i}" for i in range(MOST_KERNELS + 1))), {}, replay) == set()
    assert asked == []
