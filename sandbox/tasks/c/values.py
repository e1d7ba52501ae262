"""What an expression of the user's C is worth to the analysis: a polynomial, an address in an array, or
nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sandbox.tasks.c.polynomial import ONE, ZERO, Polynomial
from sandbox.tasks.c.ranges import Range, Ranges


@dataclass(frozen=True)
class Number:
    """`poly` is None for floating-point numbers and for what is not followed."""

    poly: Polynomial | None = None


@dataclass(frozen=True)
class Address:
    """An element of a parameter's array; `array` is "" for the function's own memory."""

    array: str
    offset: Polynomial | None
    dims: tuple[Polynomial | None, ...] = ()  # of one thing it points to, outermost first: () for an element
    others: frozenset[str] = frozenset()  # arrays that it may be in instead, at the same offset

    @property
    def arrays(self) -> frozenset[str]:
        return self.others | {self.array}

    def moved(self, by: Polynomial | None) -> Address:
        """Pointer arithmetic: `by` elements of whatever this points to."""
        return replace(self, offset=self._shifted(by))

    def item(self, index: Polynomial | None) -> Address:
        """`a[index]`."""
        return replace(self, offset=self._shifted(index), dims=self.dims[1:])

    def each(self) -> list[Address]:
        """One address for each array that it may be in."""
        return [replace(self, array=array, others=frozenset()) for array in sorted(self.arrays)]

    def _shifted(self, by: Polynomial | None) -> Polynomial | None:
        if self.offset is None or by is None:
            return None
        stride = ONE
        for dim in self.dims:
            if dim is None:
                return None
            stride = stride * dim
        return self.offset + by * stride


Value = Number | Address
UNKNOWN = Number(None)


def divide(left: Polynomial, right: Polynomial, ranges: Ranges) -> Polynomial:
    """C's integer division; for what varies, a new symbol with the bounds of the quotient."""
    exact = _split(left, right, ranges)
    if exact is not None:
        return exact
    if not ranges.varies(left) and not ranges.varies(right):
        return Polynomial.symbol(f"({_operand(left)} / {_operand(right)})")
    low, high = ranges.lower(left), ranges.upper(left)
    bound = ranges.lower(right)
    if bound is None or (ranges.varies(right) and ranges.sign(bound - 1) < 1):
        return ranges.fresh("quotient", Range())
    lows = (divide(low, bound, ranges),) if low is not None and not ranges.varies(right) else (ZERO,)
    highs = (divide(high, bound, ranges),) if high is not None else ()
    return ranges.fresh("quotient", Range(lows, highs))


def remainder(left: Polynomial, right: Polynomial, ranges: Ranges) -> Polynomial:
    a, b = left.as_constant, right.as_constant
    if a is not None and b:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return Polynomial.constant(a - quotient * b)
    if not ranges.varies(left) and not ranges.varies(right):
        return Polynomial.symbol(f"({_operand(left)} % {_operand(right)})")
    low = ZERO if ranges.sign(left) == 1 else 1 - right
    return ranges.fresh("remainder", Range((low,), (right - 1,)))


def join(first: Value, second: Value, ranges: Ranges) -> Value:
    """What holds of a value that is one or the other."""
    if first == second:
        return first
    if isinstance(first, Address) and isinstance(second, Address):
        return _either(first, second, ranges)
    if isinstance(first, Number) and isinstance(second, Number):
        return Number(_joined(first.poly, second.poly, ranges))
    return UNKNOWN


def _either(first: Address, second: Address, ranges: Ranges) -> Address:
    """A pointer that is one or the other. Where it points to own memory says nothing, so what is known of
    the other side is kept."""
    arrays = first.arrays | second.arrays
    array = next((name for name in sorted(arrays) if name.isidentifier()), min(arrays))
    if not any(name.isidentifier() for name in first.arrays):
        offset, dims = second.offset, second.dims
    elif not any(name.isidentifier() for name in second.arrays):
        offset, dims = first.offset, first.dims
    elif first.dims == second.dims:
        offset, dims = _joined(first.offset, second.offset, ranges), first.dims
    else:
        offset, dims = None, ()
    return Address(array, offset, dims, arrays - {array})


def _joined(first: Polynomial | None, second: Polynomial | None, ranges: Ranges) -> Polynomial | None:
    if first is None or second is None:
        return None
    if first == second:
        return first
    (low1, high1), (low2, high2) = _sides(first, ranges), _sides(second, ranges)
    lows = [low for low in low1 + low2 if _any(ranges, low1, low, 1) and _any(ranges, low2, low, 1)]
    highs = [
        high for high in high1 + high2 if _any(ranges, high1, high, -1) and _any(ranges, high2, high, -1)
    ]
    return ranges.fresh("either", Range(tuple(lows), tuple(highs)))


def _any(ranges: Ranges, bounds: list[Polynomial], value: Polynomial, sign: int) -> bool:
    """Whether `value` is below (sign 1) or above (-1) one of the bounds: then it bounds that side too."""
    return any(bound == value or ranges.sign((bound - value) * sign) == 1 for bound in bounds)


def _sides(value: Polynomial, ranges: Ranges) -> tuple[list[Polynomial], list[Polynomial]]:
    """Known lower and upper bounds; the value is one of either kind itself."""
    known = ranges.of(lone(value)) if lone(value) else None
    if known is not None:
        return [value, *known.lows], [value, *known.highs]
    return [value], [value]


def lone(value: Polynomial) -> str:
    """The symbol, when the polynomial is just that; else ""."""
    is_lone = value.degree() == 1 and len(value.terms) == 1 and value.terms[0][1] == 1
    return next(iter(value.symbols)) if is_lone else ""


def pinned(value: Value, ranges: Ranges) -> Value:
    """A varying value as a new symbol that keeps what is known of it now: facts of a branch outlive the
    branch."""
    if isinstance(value, Address) or value.poly is None or not ranges.varies(value.poly):
        return value
    lows, highs = [value.poly], [value.poly]
    known = ranges.of(lone(value.poly)) if lone(value.poly) else None
    if known is not None:
        lows, highs = [value.poly, *known.lows], [value.poly, *known.highs]
    else:
        low, high = ranges.lower(value.poly), ranges.upper(value.poly)
        lows += [low] if low is not None else []
        highs += [high] if high is not None else []
    return Number(ranges.fresh("branch", Range(tuple(lows), tuple(highs))))


def _split(left: Polynomial, right: Polynomial, ranges: Ranges) -> Polynomial | None:
    """The quotient as a polynomial: exact, or with a rest that is known to be smaller than the divisor."""
    if len(right.terms) != 1 or right.terms[0][1] <= 0:
        return None
    divisor, factor = dict(right.terms[0][0]), right.terms[0][1]
    quotient, rest = ZERO, ZERO
    for monomial, count in left.terms:
        powers = dict(monomial)
        if count % factor == 0 and all(powers.get(name, 0) >= power for name, power in divisor.items()):
            left_over = {name: power - divisor.get(name, 0) for name, power in powers.items()}
            kept = tuple(sorted((name, power) for name, power in left_over.items() if power))
            quotient = quotient + Polynomial(((kept, count // factor),))
        else:
            rest = rest + Polynomial(((monomial, count),))
    if not rest.terms:
        return quotient
    if left.as_constant is not None and right.as_constant is not None:
        a, b = left.as_constant, right.as_constant
        return Polynomial.constant(abs(a) // b * (1 if a >= 0 else -1))
    if not quotient.terms or ranges.varies(quotient) or right.as_constant is not None:
        return None
    if ranges.sign(rest) == 1 and ranges.sign(right - 1 - rest) == 1:
        return quotient
    if ranges.sign(-rest - 1) == 1 and ranges.sign(rest + right) == 1:
        return quotient - 1
    return None


def _operand(value: Polynomial) -> str:
    text = value.to_c()
    return text if len(value.terms) == 1 and text.isalnum() else f"({text})"
