"""PTX as data: what the parser returns. Light on imports: the lowering process pays for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

LINE_BITS = 20  # a place in the source is one number: its file's among the `Files`, then the line in it


class Files:
    """The user's own source files, numbered in the order in which code of them is met."""

    MOST = 1000

    def __init__(self) -> None:
        self.names: list[str] = []

    def place(self, name: str, line: int) -> int:
        if name not in self.names:
            if len(self.names) == self.MOST:
                return 0
            self.names.append(name)
        return self.names.index(name) << LINE_BITS | min(line, (1 << LINE_BITS) - 1)


class PtxError(Exception):
    """PTX that cannot be handled. `line` is a place in the user's source (None when unknown)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    def inside(self, function: str) -> PtxError:
        """The same, saying which function it is about."""
        if self.message.endswith(f" in {function}"):
            return self
        return PtxError(f"{self.message} in {function}", self.line)


@dataclass(frozen=True, slots=True)
class Register:
    name: str  # unique in its function, also when PTX declares one name in several scopes


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer, or the bits of a floating-point literal (`float_bits` 32 or 64 says so; 0 for integers)."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, parameter, label or function, or a special register (`%tid.x`)."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Texel:
    """`[base, {x, y}]`: a place in a texture, surface or tensor."""

    base: Register | Symbol
    coordinates: Vector


@dataclass(frozen=True, slots=True)
class Pair:
    """`%p1|%p2`: two destinations; None for `_`."""

    first: Register | None
    second: Register | None


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Part:
    """`%r1.b0`: a byte or half of a register, of video instructions."""

    register: Register
    selector: str


@dataclass(frozen=True, slots=True)
class Minus:
    """`-%r1`: an operand whose opposite is taken, of `vmad`."""

    operand: Register | Part


Operand = Register | Immediate | Symbol | Address | Vector | Texel | Pair | Negated | Part | Minus | None


@dataclass(frozen=True, slots=True)
class Prototype:
    """`.callprototype`: bytes of each return and argument parameter."""

    returns: tuple[int, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """The unusual shape of `call`: return parameters, callee, argument parameters.

    A callee in a register comes with a prototype, or with the functions that it may be (`.calltargets`).
    """

    returns: tuple[str, ...]
    callee: str | Register
    arguments: tuple[str, ...]
    prototype: Prototype | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Instruction:
    opcode: str  # "ld.global.nc.f32"
    parts: tuple[str, ...]  # ("ld", "global", "nc", "f32"); "::" qualifiers are parts too
    operands: tuple[Operand, ...]
    guard: Register | None  # `@%p`
    guard_negated: bool
    line: int  # innermost place in the user's own files; 0 when nvcc gave none
    call: Call | None = None
    targets: tuple[str, ...] = ()  # labels of `brx.idx`


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    size: int  # bytes
    align: int
    offset: int  # in the parameter block of an entry, or among the `.param` variables of a body


@dataclass(frozen=True, slots=True)
class Variable:
    """A `.global`, `.const`, `.shared` or `.local` variable."""

    name: str
    space: str
    size: int  # bytes
    align: int
    data: bytes | None = None  # initial bytes; None: zeros (`.global`, `.const`) or nothing (the others)
    addresses: tuple[tuple[int, Symbol], ...] = ()  # (offset, symbol whose address stands there)
    external: bool = False  # `.extern`: defined elsewhere; `.extern .shared` is dynamic shared memory
    visible: bool = False  # to other modules


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    returns: tuple[Parameter, ...]
    registers: dict[str, str]  # unique name -> "pred", "b8", "b16", "b32", "b64", "b128"
    variables: tuple[Variable, ...]  # declared inside: shared and local
    locals: dict[str, Parameter]  # `.param` variables declared inside (call arguments), unique names
    body: tuple[Instruction | Label, ...]
    max_threads: int | None = None  # `.maxntid`, as a product
    visible: bool = False  # to other modules

    @property
    def parameter_bytes(self) -> int:
        return max((parameter.offset + parameter.size for parameter in self.parameters), default=0)


class Functions(Mapping[str, Function]):
    """Functions with a body, entries and device functions. Each is parsed when it is first asked for: a
    module may hold thousands of lines that nobody runs, and what nobody runs need not be understood."""

    def __init__(self, parsers: Mapping[str, Callable[[], Function]]) -> None:
        self._parsers = parsers
        self._parsed: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._parsed:
            try:
                self._parsed[name] = self._parsers[name]()
            except PtxError as error:
                raise error.inside(name) from error
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsers)

    def __len__(self) -> int:
        return len(self._parsers)


@dataclass(frozen=True, slots=True)
class Module:
    version: str
    target: str
    variables: tuple[Variable, ...]
    functions: Functions
    entries: frozenset[str]
    order: dict[str, int]  # every function declared or defined -> its place in the text
    addressed: frozenset[str]  # functions whose address something in the module takes
