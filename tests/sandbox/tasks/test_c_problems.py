"""Bad input: each is one clear problem, with its place, and what to do."""

from __future__ import annotations

import pytest
from c_cases import SEED, load, problem

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled
from sandbox.tasks.base import ArrayInput, Inputs
from sandbox.tasks.load import load_task


def test_a_syntax_error_has_line_and_column() -> None:
    found = problem("void f(int n, float *x)\n{\n    x[0] = ;\n}\n")
    assert (found.kind, found.file, found.line, found.column) == ("parse_error", "task.c", 3, 12)


def test_what_gcc_refuses_has_line_and_column() -> None:
    found = problem("void f(int n, float *x)\n{\n    x[0] = nobody;\n}\n")
    assert (found.kind, found.line, found.column) == ("does_not_compile", 3, 12)
    assert "nobody" in found.message


def test_a_missing_header_and_a_missing_function_are_named() -> None:
    found = problem('#include "mine.h"\nvoid f(float *x) { x[0] = 1; }\n')
    assert (found.kind, found.line) == ("preprocessor_error", 1)
    assert "math.h" in found.hint
    found = problem("float g(int); void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = g(i); }")
    assert found.kind == "undefined_function"
    assert found.message.startswith("g ")


@pytest.mark.parametrize(
    ("source", "kind", "choices"),
    [
        ("int x;", "no_function", []),
        ("int main(void) { return 0; }", "whole_program", []),
        ("void a(float *x) {} void b(float *x) {}", "several_functions", ["a", "b"]),
    ],
)
def test_which_function(source: str, kind: str, choices: list[str]) -> None:
    found = problem(source)
    assert (found.kind, found.choices) == (kind, choices)


TWO = (
    "void a(int n, float *x) { for (int i = 0; i < n; i++) x[i] *= 2; } void b(int n, float *x) { x[n] = 0; }"
)


def test_the_entry_can_be_chosen() -> None:
    assert load(TWO, entry="a").spec.name == "a"
    found = problem(TWO, entry="c")
    assert (found.kind, found.choices) == ("unknown_entry", ["a", "b"])


def test_helpers_and_main_are_no_rivals() -> None:
    source = """
        #include <stdio.h>
        static float half(float v) { return v * 0.5f; }
        void entry(int n, float *x) { for (int i = 0; i < n; i++) x[i] = half(x[i]); }
        int main(void) { float x[4] = {1, 2, 3, 4}; entry(4, x); printf("%f\\n", x[0]); return 0; }
    """
    assert load(source).spec.name == "entry"


@pytest.mark.parametrize(
    "parameters",
    [
        "struct s *p, int n",
        "float **x",
        "float *x, ...",
        "void (*f)(int), float *x",
        "void *x",
        "long double *x",
        "float (*x)[]",
    ],
)
def test_types_that_cannot_cross(parameters: str) -> None:
    found = problem(f"struct s {{ int a; }};\nvoid f({parameters}) {{}}\n")
    assert (found.kind, found.line) == ("unsupported_parameter", 2)


def test_an_unknown_extent_is_asked_for_and_can_be_given() -> None:
    source = "void f(int n, float *x) { int i = 0; while (x[i] > 0) { x[i] = 0; i++; } }"
    found = problem(source)
    assert (found.kind, found.choices) == ("unknown_extent", ["x"])
    assert '[arrays.x]\nextent = "n"' in found.hint
    given = Inputs(arrays={"x": ArrayInput(extent="n + 1", low=-1.0, high=0.0)})
    assert load(source, inputs=given).spec.parameters[1].extent == "n + 1"


def test_written_globals_are_refused() -> None:
    found = problem("int calls;\nvoid f(int n, float *x)\n{\n    calls++;\n    x[0] = n;\n}\n")
    assert (found.kind, found.line) == ("unsupported_global", 4)


def test_constants_at_file_scope_are_fine() -> None:
    task = load(
        """
        #define SCALE 3
        static const float table[4] = {1, 2, 3, 4};
        void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = SCALE * table[i % 4]; }
        """
    )
    assert task.spec.sizes["n"] > 1000


def test_the_programs_own_overrun_is_found() -> None:
    found = problem(
        "int f(int n, const int *x) { int s = 0; for (int i = 0; i < n; i++) s += x[i + 1]; return s; }",
        inputs=Inputs(arrays={"x": ArrayInput(extent="n")}, sizes={"n": 100}),
    )
    assert (found.kind, found.choices) == ("reference_faults", ["x"])
    assert "behind the end of x" in found.message
    assert "n = 100" in found.message


def test_an_overrun_before_the_beginning_is_found_too() -> None:
    found = problem("void f(int n, float *x) { for (int i = 0; i < n; i++) x[i - 1] = 1; }")
    assert "before the beginning of x" in found.message


def test_an_endless_loop_ends() -> None:
    found = problem("void f(int n, float *x) { for (int i = 0; i < n; i += n - n) x[0] += 1; }")
    assert found.kind == "reference_timeout"


def test_a_crash_and_an_exit_are_told() -> None:
    crash = "void f(int n, int *x) { for (int i = 0; i < n; i++) x[i] = i / x[i] / (x[i] - x[i]); }"
    assert problem(crash).kind == "reference_crashes"
    assert (
        problem("#include <stdlib.h>\nvoid f(int n, int *x) { x[0] = n; exit(3); }").kind == "reference_exits"
    )


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"void f(float *x) { x[0] = 1; } // \xff", "not_utf8"),
        (b"void f(\0)", "not_text"),
        (b"/*" + b"x" * 1_000_000 + b"*/", "too_long"),
        (b"  \n", "empty"),
    ],
)
def test_what_is_no_text(raw: bytes, kind: str) -> None:
    assert problem(raw).kind == kind


def test_the_place_of_a_byte_that_is_not_utf8() -> None:
    found = problem(b"void f(float *x)\n{ \xc3(; }")
    assert "byte 19" in found.message
    assert found.line == 2


def test_almost_a_megabyte_is_read() -> None:
    source = "/*" + "x" * 900_000 + "*/ void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] += 1; }"
    assert load(source).spec.sizes["n"] > 1000


def test_deep_nesting_is_a_message() -> None:
    assert problem(f"int f(int n) {{ return {'(' * 5000}n{')' * 5000}; }}").kind in (
        "unsupported_construct",
        "parse_error",
    )


@pytest.mark.parametrize(
    "inputs",
    [
        Inputs(sizes={"q": 3}),
        Inputs(sizes={"n": -1}),
        Inputs(arrays={"z": ArrayInput()}),
        Inputs(arrays={"x": ArrayInput(extent="q")}),
        Inputs(arrays={"x": ArrayInput(extent="n.__class__")}),
    ],
)
def test_inputs_that_make_no_sense(inputs: Inputs) -> None:
    source = "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] += 1; }"
    assert problem(source, inputs=inputs).kind == "bad_inputs"


def test_an_output_that_is_only_partly_written_is_found() -> None:
    """The input that leaves it unwritten is too rare to show while probing."""
    task = load(
        "void f(int n, const int *x, int *y) { for (int i = 0; i < n; i++) if (x[i] > -101) y[i] = x[i]; }"
    )
    assert {p.name: p.access for p in task.spec.parameters if p.kind == "array"}["y"] == "write"
    assert task.expected(task.draws(SEED), Cancellation())


def test_cancelling_stops_loading() -> None:
    cancel = Cancellation()
    cancel.set()
    with pytest.raises(Cancelled):
        load_task("void f(float *x) { x[0] = 1; }", filename="a.c", entry=None, inputs=None, cancel=cancel)
