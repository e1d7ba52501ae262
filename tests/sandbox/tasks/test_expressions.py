"""Size expressions: C's arithmetic, and nothing else."""

import pytest

from sandbox.tasks import expressions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n * m + 1", 22),
        ("(n + 31) / 32", 1),
        ("-n / 2", -3),
        ("-n % 2", -1),
        ("min(n, m) * max(1, m)", 9),
        ("7", 7),
    ],
)
def test_values(text: str, value: int) -> None:
    assert expressions.evaluate(text, {"n": 7, "m": 3}) == value


@pytest.mark.parametrize(
    "text",
    [
        "n.__class__",
        "__import__('os')",
        "n ** 9",
        "[n]",
        "n if n else m",
        "n / 0",
        "q + 1",
        "1.5",
        "True",
        "",
        "n *",
        "min()",
        "(" * 300 + "n" + ")" * 300,
        "9" * 300,
        "max(n, key=n)",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(expressions.ExpressionError):
        expressions.evaluate(text, {"n": 7, "m": 3})


def test_names_are_sizes_not_functions() -> None:
    assert expressions.names("min(n, m) * 2") == {"n", "m"}
