"""What has no translation is named: construct, line, why."""

from __future__ import annotations

import pytest
from c_samples import context_of

from sandbox.errors import TaskProblem

REFUSED = {
    "goto": (
        "void f(int n, float *x) {\n  int i = 0;\nagain:\n  x[i] = 1;\n  if (++i < n) goto again;\n}",
        3,
        "goto",
    ),
    "rand": (
        "#include <stdlib.h>\nvoid f(int n, float *x) {\n  for (int i = 0; i < n; i++) x[i] = rand();\n}",
        3,
        "rand",
    ),
    "printf": ('#include <stdio.h>\nvoid f(int n, float *x) {\n  printf("%d", n);\n}', 3, "printf"),
    "long double": ("void f(int n, float *x) {\n  long double s = 0;\n  x[0] = s;\n}", 2, "long double"),
    "reinterpreted": ("void f(int n, float *x) {\n  int *p = (int *)x;\n  p[0] = 1;\n}", 2, "reinterpreted"),
    "static state": ("void f(int n, float *x) {\n  static int calls = 0;\n  x[0] = calls++;\n}", 2, "static"),
    "two arrays": (
        "void f(int n, float *x, float *y) {\n  float *p = x;\n  if (n > 4) p = y;\n  p[0] = 1;\n}",
        3,
        "way taken",
    ),
    "structs given": (
        "typedef struct { float x; } p;\nvoid f(int n, p *a) {\n  a[0].x = 1;\n}",
        2,
        "structs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_its_line(name: str) -> None:
    source, line, word = REFUSED[name]
    with pytest.raises(TaskProblem) as raised:
        context_of(source, "f")
    problem = raised.value.problem
    assert problem.kind == "unsupported_construct"
    assert problem.line == line
    assert word in problem.message
