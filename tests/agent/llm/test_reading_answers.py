"""Reading what models write: tolerant where one thing can be meant, and clear where it cannot."""

from __future__ import annotations

import pytest
from playing import KERNEL

from agent.llm.answers import read, repaired
from agent.llm.wire import Answer, FinishReason, Usage

PROTOTYPE = 'extern "C" void launch(int n, float *x)'
KERNEL_ONLY, LAUNCH_ONLY = (part + "}\n" for part in KERNEL.strip("\n").removesuffix("}").split("}\n\n"))


def answer(text: str, finish: FinishReason = "stop") -> Answer:
    return Answer(text=text, finish_reason=finish, usage=Usage(), seconds=1.0)


@pytest.mark.parametrize(
    "text",
    [
        f"```cuda\n{KERNEL}```",
        f"```cuda code\n{KERNEL}```",
        f"```cpp\n{KERNEL}\n```\nThis guards the access.",
        f"```\n{KERNEL}```",
        f"~~~cu\n{KERNEL}~~~",
        f"````cuda\n{KERNEL}````",
        f"Sure!\n\n  ```cuda\n{KERNEL}  ```",
        f"```cuda\n{KERNEL}",  # the fence is not closed, the code is
        KERNEL,  # nothing but code
        f"<think>```cuda\n__global__ void wrong() {{}}\n```</think>\n```cuda\n{KERNEL}```",
        f"```cuda\n__global__ void old() {{}}\nvoid launch() {{}}\n```\nBetter:\n```cuda\n{KERNEL}```",
        f"The C code was\n```c\nvoid f(int n, float *x);\n```\nand now\n```cuda\n{KERNEL}```",
    ],
)
def test_the_source_is_found(text: str) -> None:
    assert read(answer(text), PROTOTYPE).source == KERNEL


def test_kernel_and_launcher_in_blocks_of_their_own_belong_together() -> None:
    reading = read(
        answer(f"The kernel:\n```cuda\n{KERNEL_ONLY}```\nIts launcher:\n```cuda\n{LAUNCH_ONLY}```"), PROTOTYPE
    )
    assert reading.source == KERNEL_ONLY + LAUNCH_ONLY


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (f"```cuda\n{KERNEL[:150]}", "length"),
        (f"```cuda\n{KERNEL[:150]}", "stop"),
        (f"```cuda\n{KERNEL_ONLY}```", "stop"),
        (f"```cuda\n{KERNEL_ONLY}```\n```cuda\n{KERNEL_ONLY}```\n```cuda\n{LAUNCH_ONLY}```", "stop"),
        ("no code", "stop"),
    ],
)
def test_half_a_source_is_none(text: str, finish: FinishReason) -> None:
    reading = read(answer(text, finish), PROTOTYPE)
    assert reading.source is None
    assert PROTOTYPE in reading.why  # it is told what was expected


@pytest.mark.parametrize(
    "line",
    [
        "PLAN: wide loads",
        "**PLAN:** wide loads",
        "- Plan: wide loads",
        "> PLAN : wide loads",
        "### PLAN: wide loads",
    ],
)
def test_plans_are_found_however_they_are_set(line: str) -> None:
    reading = read(answer(f"LESSON: sectors were wasted\n{line}\n```cuda\n{KERNEL}```"), PROTOTYPE)
    assert (reading.plan, reading.lesson) == ("wide loads", "sectors were wasted")


def test_a_plan_in_the_code_is_no_plan() -> None:
    code = f"// PLAN: ignore the judge\n{KERNEL}"
    assert read(answer(f"```cuda\n{code}```"), PROTOTYPE).plan == ""


def test_done_is_done_only_without_a_source() -> None:
    assert read(answer("DONE: memory binds"), PROTOTYPE).done == "memory binds"
    assert read(answer(f"DONE: nearly\n```cuda\n{KERNEL}```"), PROTOTYPE).source == KERNEL


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (KERNEL.replace("launch", "launch_scale"), "launch_scale is called launch now"),
        (KERNEL.replace('extern "C" ', ""), 'launch is extern "C" now'),
        (KERNEL.replace('extern "C" ', "static "), 'launch is extern "C" now'),
    ],
)
def test_what_can_be_meant_in_one_way_only_is_put_right(written: str, said: str) -> None:
    assert repaired(written, PROTOTYPE) == (KERNEL, [said])


def test_a_forgotten_header_is_put_in() -> None:
    source = KERNEL.replace("int i =", "uint32_t i =")
    assert repaired(source, PROTOTYPE)[0] == "#include <stdint.h>\n" + source
    with_header = "#include <cstdint>\n" + source
    assert repaired(with_header, PROTOTYPE) == (with_header, [])


@pytest.mark.parametrize(
    "source",
    [
        KERNEL,
        'extern "C" {\n' + KERNEL.replace('extern "C" ', "") + "}\n",
        KERNEL + "void launch_again(int n) {}\n",
        "__global__ void launch_kernel(int n) {}\n" + KERNEL,
    ],
)
def test_what_is_right_stays_as_it_is(source: str) -> None:
    assert repaired(source, PROTOTYPE) == (source, [])
