"""Matrix products through shared memory, with the elementwise work that follows done on the way out."""

from __future__ import annotations

from agent.translator.pytorch.emit import Body
from agent.translator.pytorch.index import Ix, flatten, variable
from agent.translator.pytorch.ir import C_TYPES, Reduce, Source, Value, accesses
from agent.translator.pytorch.plan import Plan, output_coordinates
from agent.translator.pytorch.schedule import Schedule

_DEPTH = 16  # of a tile along k
_PER_THREAD = 4  # rows and columns of the result a thread holds, where it holds several
_PAD = 2  # spreads a transposing store over the banks


def emit_matmul(body: Body, plan: Plan, schedule: Schedule) -> str:
    """Writes the body; returns the launch configuration's grid and block."""
    return _Product(body, plan, schedule).write()


def tile_edge(product: Reduce, schedule: Schedule) -> int:
    """64 needs a result large enough to fill it; smaller ones get 32, and 16 has one element a thread."""
    _, m, n = product.shape
    if schedule.tile == 64:
        return 64 if min(m, n) >= 64 else 32
    return 16


class _Product:
    def __init__(self, body: Body, plan: Plan, schedule: Schedule) -> None:
        self._body, self._plan, self._kernel = body, plan, body.kernel
        product = body.kernel.product
        assert product is not None
        assert product.product is not None
        self._value = product
        self._a, self._b = product.product
        self._batch, self._m, self._n = product.shape
        self._k = product.length
        self._edge = tile_edge(product, schedule)
        self._share = _PER_THREAD if self._edge > 16 else 1
        self._side = self._edge // self._share  # threads along each side of the tile
        self._type = C_TYPES[product.dtype]

    def write(self) -> str:
        body, edge, side = self._body, self._edge, self._side
        body.line(f"__shared__ {self._type} a_tile[{_DEPTH}][{edge + self._pad(self._a, 'm')}];")
        body.line(f"__shared__ {self._type} b_tile[{_DEPTH}][{edge + self._pad(self._b, 'n')}];")
        body.line(f"const int tx = threadIdx.x % {side}, ty = threadIdx.x / {side};")
        body.line(f"const int first_m = blockIdx.y * {edge}, first_n = blockIdx.x * {edge};")
        if self._batch > 1:
            body.line("const int batch = blockIdx.z;")
        shape = f"[{self._share}][{self._share}]" if self._share > 1 else ""
        body.line(f"{self._type} sum{shape} = {'{}' if shape else '0'};")
        with body.block(f"for (int first_k = 0; first_k < {self._k}; first_k += {_DEPTH})"):
            self._load("a_tile", self._a, "m", self._m)
            self._load("b_tile", self._b, "n", self._n)
            body.line("__syncthreads();")
            self._accumulate()
            if self._k > _DEPTH:  # nobody may overwrite the tiles before all have used them
                body.line(f"if (first_k + {_DEPTH} < {self._k}) __syncthreads();")
        self._write_out()
        grid = f"dim3({-(-self._n // edge)}, {-(-self._m // edge)}, {self._batch})"
        return f"{grid}, {side * side}"

    def _place(self, value: Value, outer: str, extent: int) -> list[Ix]:
        batch, k, other = variable("batch", self._batch), variable("k", self._k), variable(outer, extent)
        return [batch, other, k] if value is self._a else [batch, k, other]

    def _k_is_contiguous(self, value: Value, outer: str, extent: int) -> bool:
        """Neighbouring k are neighbours in memory (and neighbouring rows or columns are not)."""
        for access in accesses(value, self._place(value, outer, extent), self._in_memory, root=False):
            if isinstance(access.value, Source) or self._in_memory(access.value):
                address = flatten(access.at, access.value.shape)
                return address.coefficient("k") == 1 or address.coefficient(outer) not in (0, 1, None)
        return False

    def _in_memory(self, value: Value) -> bool:
        return id(value) in self._plan.buffers

    def _pad(self, value: Value, outer: str) -> int:
        extent = self._m if outer == "m" else self._n
        return _PAD if self._k_is_contiguous(value, outer, extent) else 0

    def _load(self, tile: str, value: Value, outer: str, extent: int) -> None:
        """Neighbouring threads load neighbouring addresses, whichever way the operand lies."""
        body, edge, threads = self._body, self._edge, self._side**2
        along_k = self._k_is_contiguous(value, outer, extent)
        inner = _DEPTH if along_k else edge
        body.line("#pragma unroll")
        with body.block(f"for (int item = threadIdx.x; item < {edge * _DEPTH}; item += {threads})"):
            fast, slow = f"item % {inner}", f"item / {inner}"
            at_k, at_other = (fast, slow) if along_k else (slow, fast)
            body.line(f"const int tile_k = {at_k}, tile_{outer} = {at_other};")
            tests = []
            if self._k > 1:
                body.line("const int k = first_k + tile_k;")
            if extent > 1:
                body.line(f"const int {outer} = first_{outer} + tile_{outer};")
            if self._k % _DEPTH:
                tests.append(f"k < {self._k}" if self._k > 1 else "tile_k == 0")
            if extent % edge:
                tests.append(f"{outer} < {extent}" if extent > 1 else f"tile_{outer} == 0")
            destination = f"{tile}[tile_k][tile_{outer}]"
            if not tests:
                body.line(f"{destination} = {body.element(value, self._place(value, outer, extent))};")
                return
            body.line(f"{destination} = 0;")
            with body.block(f"if ({' && '.join(tests)})"):
                body.line(f"{destination} = {body.element(value, self._place(value, outer, extent))};")

    def _accumulate(self) -> None:
        body, share, side = self._body, self._share, self._side
        body.line("#pragma unroll")
        with body.block(f"for (int k = 0; k < {_DEPTH}; ++k)"):
            if share == 1:
                body.line("sum += a_tile[k][ty] * b_tile[k][tx];")
                return
            body.line(f"{self._type} a_part[{share}], b_part[{share}];")
            body.line("#pragma unroll")
            with body.block(f"for (int i = 0; i < {share}; ++i)"):
                body.line(f"a_part[i] = a_tile[k][ty + i * {side}];")
                body.line(f"b_part[i] = b_tile[k][tx + i * {side}];")
            body.line("#pragma unroll")
            with body.block(f"for (int i = 0; i < {share}; ++i)"):
                body.line("#pragma unroll")
                body.line(f"for (int j = 0; j < {share}; ++j) sum[i][j] += a_part[i] * b_part[j];")

    def _write_out(self) -> None:
        body, share, side = self._body, self._share, self._side
        if share == 1:
            self._store("first_m + ty", "first_n + tx", "sum")
            return
        body.line("#pragma unroll")
        with body.block(f"for (int i = 0; i < {share}; ++i)"):
            body.line("#pragma unroll")
            with body.block(f"for (int j = 0; j < {share}; ++j)"):
                self._store(f"first_m + ty + i * {side}", f"first_n + tx + j * {side}", "sum[i][j]")

    def _store(self, m: str, n: str, total: str) -> None:
        body, tests = self._body, []
        for name, text, extent in (("m", m, self._m), ("n", n, self._n)):
            body.line(f"const int {name} = {text};")
            if extent % self._edge:
                tests.append(f"{name} < {extent}")
        row = flatten(
            [variable("batch", self._batch), variable("m", self._m), variable("n", self._n)],
            self._value.shape,
        )
        place = [variable("batch", self._batch), variable("m", self._m), variable("n", self._n)]
        with body.block(f"if ({' && '.join(tests)})" if tests else ""):
            body.know(self._value, place, total)
            for value in self._kernel.per_row:
                body.store(value, output_coordinates(self._kernel, value, row, None))
