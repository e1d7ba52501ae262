"""Finding programs that are the same, or nearly.

Exact: the same tokens once names, comments, layout and the spelling of types are gone. Near: the sets of all
runs of five such tokens agree by at least 0.9 (Jaccard). Candidates for that are found by MinHash, so that
thousands of programs are compared with few. Names count for nothing in a run: every one is `v`.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

#: Agreement from which two programs are nearly the same: what the published data sets use for their filters.
NEAR = 0.9
_RUN = 5
_HASHES, _BANDS = 64, 16  # four rows a band: at an agreement of 0.9, one in a hundred thousand is missed

_TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|(?:0[xX][0-9a-fA-F]+|\d*\.?\d+(?:[eE][-+]?\d+)?)\w*"
    r"|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|\+\+|--|->|[^\s\w]",
    re.DOTALL,
)
_KEPT = frozenset(
    (
        *("if", "else", "for", "while", "do", "return", "break", "continue", "switch", "case", "default"),
        *("goto", "sizeof", "struct", "int", "long", "short", "char", "unsigned", "signed", "void"),
        *("fabs", "sqrt", "exp", "log", "pow", "sin", "cos", "tanh", "fmin", "fmax", "floor"),
    )
)
_DROPPED = frozenset(("const", "restrict", "static", "inline", "extern", "volatile", "register", "{", "}"))
_REAL = frozenset(("float", "double", "real", "real_t", "scalar"))


@dataclass(frozen=True)
class Print:
    """What is compared of one program."""

    exact: str
    runs: frozenset[int]


@dataclass
class Index:
    """Programs seen so far."""

    near: float = NEAR
    _exact: dict[str, str] = field(default_factory=dict)
    _runs: dict[str, frozenset[int]] = field(default_factory=dict)
    _bands: dict[tuple[int, bytes], list[str]] = field(default_factory=lambda: defaultdict(list))

    def find(self, print_: Print) -> tuple[str, float] | None:
        """(name, agreement) of the most similar program seen, from `near` on; 1.0 for the same."""
        if print_.exact in self._exact:
            return self._exact[print_.exact], 1.0
        best: tuple[str, float] | None = None
        for name in dict.fromkeys(n for key in _keys(print_.runs) for n in self._bands.get(key, ())):
            agreement = jaccard(print_.runs, self._runs[name])
            if agreement >= self.near and (best is None or agreement > best[1]):
                best = name, agreement
        return best

    def add(self, name: str, print_: Print) -> None:
        self._exact.setdefault(print_.exact, name)
        self._runs[name] = print_.runs
        for key in _keys(print_.runs):
            self._bands[key].append(name)


def fingerprint(source: str) -> Print:
    """Of a C, CUDA or Python text. Never fails: what is no token is compared as it stands."""
    renamed, plain = normalise(source)
    exact = hashlib.sha256(" ".join(renamed).encode()).hexdigest()
    runs = (" ".join(plain[at : at + _RUN]) for at in range(max(1, len(plain) - _RUN + 1)))
    return Print(exact, frozenset(_hash(run) for run in runs))


def normalise(source: str) -> tuple[list[str], list[str]]:
    """(tokens with names numbered as they appear, tokens with every name alike)."""
    text = re.sub(
        r"^[ \t]*#[ \t]*include[^\n]*$|^[ \t]*typedef[^\n]*;[ \t]*$", "", source, flags=re.MULTILINE
    )
    numbers: dict[str, str] = {}
    renamed, plain = [], []
    for token in _TOKEN.findall(text):
        if token.startswith(("/*", "//")) or token in _DROPPED:
            continue
        word = token
        if token[0].isalpha() or token[0] == "_":
            stem = token[:-1] if token.endswith("f") and token[:-1] in _KEPT else token
            if token in _REAL:
                word = "real"
            elif token in ("int32_t", "int64_t"):
                word = "int"
            elif stem in _KEPT:
                word = stem
            else:
                renamed.append(numbers.setdefault(token, f"v{len(numbers)}"))
                plain.append("v")
                continue
        elif token[0].isdigit() or (token[0] == "." and len(token) > 1):
            word = token.rstrip("fFuUlL") if not token.lower().startswith("0x") else token.rstrip("uUlL")
            renamed.append(word)
            plain.append(word if word in ("0", "1", "2") else "#")
            continue
        renamed.append(word)
        plain.append(word)
    return renamed, plain


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Shared over all."""
    if not one and not other:
        return 1.0
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _permutations() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    rng = np.random.Generator(np.random.Philox(key=20))
    top = np.iinfo(np.uint64).max
    factors = rng.integers(0, top, _HASHES, dtype=np.uint64, endpoint=True) | np.uint64(1)
    return factors, rng.integers(0, top, _HASHES, dtype=np.uint64, endpoint=True)


_FACTORS, _SHIFTS = _permutations()


def _keys(runs: Iterable[int]) -> list[tuple[int, bytes]]:
    """The bands of the MinHash signature."""
    values = np.fromiter(runs, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = values[:, None] * _FACTORS[None, :] + _SHIFTS[None, :]
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    signature = mixed.min(axis=0).reshape(_BANDS, -1)
    return [(band, row.tobytes()) for band, row in enumerate(signature)]
