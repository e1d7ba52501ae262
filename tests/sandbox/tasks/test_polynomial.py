"""Integer polynomials: normal form, C text, evaluation."""

from sandbox.tasks.c.polynomial import Polynomial

N, M, ROW, J = (Polynomial.symbol(name) for name in "nmij")


def test_equal_polynomials_are_equal() -> None:
    assert (N + 1) * (N - 1) == N * N - 1
    assert hash(N + M) == hash(M + N)
    assert (N - N).as_constant == 0
    assert N.as_constant is None


def test_coefficient_and_substitution() -> None:
    place = ROW * M + J + 2 * M
    assert place.coefficient("i") == M
    assert place.without("i") == J + 2 * M
    assert place.substitute({"i": N - 1, "j": M - 1}) == N * M + 2 * M - 1
    assert place.degree("m") == 1
    assert place.degree() == 2


def test_text_reads_as_c_and_evaluates_the_same() -> None:
    cases = [N * M - 2 * N + 1, M - N, -N, Polynomial.constant(-3), N * N * M, N - N]
    assert [p.to_c() for p in cases] == ["m * n - 2 * n + 1", "m - n", "-n", "-3", "m * n * n", "0"]
    values = {"n": 5, "m": 11}
    assert [p.evaluate(values) for p in cases] == [eval(p.to_c(), dict(values)) for p in cases]


def test_opaque_atoms_are_evaluated_as_c() -> None:
    assert (2 * Polynomial.symbol("(n / 2)") + 1).evaluate({"n": 7}) == 7
