"""Where lines of one text are in another: a thread goes along with its code, or its code is gone.

Every place in the new text where the quoted lines, or something very like them, stand is a candidate. What
decides between candidates is what a reader would go by: how alike the text is, the lines around it, the
function it is in, and whether a diff of the two texts leads there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nlargest
from itertools import chain

from webapp.reviews.sources import one_line_ends, sha256

CONTEXT = 3
#: How far around a place lines say something about it when places are compared.
_REACH = 6
#: Text less alike than this is other code.
_ALIKE = 0.6
#: The same away from where a diff leads, where only the text speaks for it.
_ALIKE_ELSEWHERE = 0.8
_FEW_LETTERS = 6
#: Bounds, so that no text makes anybody wait: candidates compared, their words, pairs of lines.
_RATED, _WORDS_MAX, _LINES_IN_ORDER = 60, 600, 2_000_000

_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEYWORDS = frozenset(
    {
        *("if", "else", "for", "while", "do", "switch", "case", "return", "break", "continue", "sizeof"),
        *("int", "float", "double", "half", "void", "const", "unsigned", "char", "long", "short", "bool"),
        *("auto", "struct", "static", "extern", "template", "typename", "size_t", "true", "false"),
        *("__global__", "__device__", "__host__", "__shared__", "__restrict__", "__syncthreads"),
        *("__launch_bounds__", "threadIdx", "blockIdx", "blockDim", "gridDim"),
    }
)
_OPENS_NOTHING = frozenset({"if", "for", "while", "switch", "catch", "do", "else", "return", "sizeof"})


@dataclass(frozen=True)
class Range:
    """Lines, 1-based, both inclusive."""

    line: int
    end_line: int


def lines_of(source: str) -> list[str]:
    """Without line ends, whatever kind they are of; a line feed at the end begins no further line."""
    lines = one_line_ends(source).split("\n")
    return lines[:-1] if lines[-1] == "" and len(lines) > 1 else lines


def quoted(source: str, place: Range) -> str:
    return "\n".join(lines_of(source)[place.line - 1 : place.end_line])


def context_hash(source: str, place: Range) -> str:
    lines = lines_of(source)
    return sha256("\n".join(lines[max(0, place.line - 1 - CONTEXT) : place.end_line + CONTEXT]))


def found_in(old: str, place: Range, new: str) -> Range | None:
    """Where the lines of `old` are in `new`; None when they are gone."""
    if one_line_ends(old) == one_line_ends(new):
        return place
    before, after = _Text.of(old), _Text.of(new)
    start, end = _trimmed(before, place)
    if start == end:  # blank lines alone: their neighbours say where they are
        return _between(before, after, place)
    search = _Search(before, after, start, end)
    best = search.best()
    if best is None:
        return None
    # Blank lines at the edges of the range were left out while looking.
    first = best[0] - (start - (place.line - 1))
    last = best[1] + (place.end_line - end)
    edges = [*range(first, best[0]), *range(best[1], last)]
    if all(0 <= it < len(after.plain) and not after.plain[it] for it in edges):
        return Range(first + 1, last)
    return Range(best[0] + 1, best[1])


@dataclass(frozen=True)
class _Text:
    plain: list[str]  # lines with white space made one
    words: list[list[str]]  # of each line
    functions: list[str]  # the name of the function that each line is in; "" outside of all

    @staticmethod
    @lru_cache(maxsize=8)
    def of(source: str) -> _Text:
        lines = lines_of(source)
        words = [_WORD.findall(line) for line in lines]
        return _Text([" ".join(line.split()) for line in lines], words, _functions(lines))


def _functions(lines: Sequence[str]) -> list[str]:
    """By braces and the last name before a parenthesis: what a reader's eye takes for the function."""
    names: list[str] = []
    depth, current, opened_at, candidate = 0, "", 0, ""
    for line in lines:
        code = re.sub(r'//.*|"(?:\\.|[^"\\])*"|/\*.*?\*/', " ", line)
        began = current
        for match in re.finditer(r"([A-Za-z_]\w*)\s*\(|([{}])|(;)", code):
            name, brace, end = match.groups()
            if name:
                if not current and name not in _OPENS_NOTHING and not name.startswith("__launch_bounds"):
                    candidate = candidate or name
            elif brace == "{":
                if not current and candidate:
                    current, opened_at = candidate, depth
                candidate = ""
                depth += 1
            elif brace == "}":
                depth = max(0, depth - 1)
                if current and depth <= opened_at:
                    began, current = began or current, ""
            elif end and not current:
                candidate = ""
        names.append(began or current or candidate)
    return names


def _trimmed(text: _Text, place: Range) -> tuple[int, int]:
    """The range without blank lines at its edges, from 0, the end excluded."""
    start, end = place.line - 1, min(place.end_line, len(text.plain))
    while start < end and not text.plain[start]:
        start += 1
    while end > start and not text.plain[end - 1]:
        end -= 1
    return start, end


def _between(before: _Text, after: _Text, place: Range) -> Range | None:
    mapped = mapped_lines(before.plain, after.plain)
    above, below = mapped.get(place.line - 2), mapped.get(place.end_line)
    first = above + 1 if above is not None else None
    if first is None and below is not None:
        first = below - (place.end_line - place.line + 1)
    if first is None or first < 0:
        return None
    last = first + place.end_line - place.line
    if last >= len(after.plain) or any(after.plain[first : last + 1]):
        return None
    return Range(first + 1, last + 1)


def mapped_lines(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Which line of the old text is which of the new one, by a diff that begins with the lines that are
    unique on both sides: braces and blank lines follow their neighbours, they lead nowhere."""
    mapped: dict[int, int] = {}
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        a, b, c, d = waiting.pop()
        while a < b and c < d and old[a] == new[c]:
            mapped[a] = c
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            mapped[b - 1] = d - 1
            b, d = b - 1, d - 1
        if a >= b or c >= d:
            continue
        pillars = _pillars(old, new, a, b, c, d)
        if pillars:
            previous = (a, c)
            for i, j in [*pillars, (b, d)]:
                waiting.append((previous[0], i, previous[1], j))
                previous = (i, j)
        elif (b - a) * (d - c) <= _LINES_IN_ORDER:
            matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
            for block in matcher.get_matching_blocks():
                for offset in range(block.size):
                    mapped[a + block.a + offset] = c + block.b + offset
    return mapped


def _pillars(old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Lines that stand once on either side, in the longest order that both sides share (patience diff)."""
    ours, theirs = Counter(old[a:b]), Counter(new[c:d])
    there = {new[j]: j for j in range(c, d) if theirs[new[j]] == 1}
    pairs = [(i, there[old[i]]) for i in range(a, b) if ours[old[i]] == 1 and old[i] in there and old[i]]
    tails: list[tuple[int, int]] = []  # longest increasing run of j, by patience sorting
    back: dict[tuple[int, int], tuple[int, int] | None] = {}
    for pair in pairs:
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if tails[middle][1] < pair[1] else (low, middle)
        back[pair] = tails[low - 1] if low else None
        tails[low : low + 1] = [pair]
    chosen: list[tuple[int, int]] = []
    at = tails[-1] if tails else None
    while at is not None:
        chosen.append(at)
        at = back[at]
    # The first pair would begin an empty stretch for ever; whoever calls moves past equal lines first.
    return chosen[::-1]


class _Search:
    """For one range of lines (from 0, the end excluded) in the new text."""

    def __init__(self, before: _Text, after: _Text, start: int, end: int) -> None:
        self.before, self.after, self.start, self.end = before, after, start, end
        self.wanted = before.plain[start:end]
        self.mapped = mapped_lines(before.plain, after.plain)
        self.renamed = self._renamed()
        self.function = self.renamed.get(before.functions[start], before.functions[start])
        self.taken = self._taken()
        #: Braces, "else", a barrier: what stands everywhere says nothing of where it is.
        words = [word for line in self.wanted for word in _NAME.findall(line)]
        letters = sum(len(word) for word in words if word not in _KEYWORDS)
        seen = sum(before.plain[at : at + len(self.wanted)] == self.wanted for at in range(len(before.plain)))
        self.telling = letters >= _FEW_LETTERS and seen == 1

    def _renamed(self) -> dict[str, str]:
        """What the old text's functions are called in the new one, where most of their lines are."""
        there: dict[str, Counter[str]] = {}
        for i, j in self.mapped.items():
            if self.before.functions[i] and self.after.functions[j]:
                there.setdefault(self.before.functions[i], Counter())[self.after.functions[j]] += 1
        names = set(self.after.functions)
        return {name: name if name in names else count.most_common(1)[0][0] for name, count in there.items()}

    def _taken(self) -> set[int]:
        """Lines of the new text that are other lines of the old one, in the function where those belong: no
        thread slips to them because its own lines looked alike."""
        return {
            j
            for i, j in self.mapped.items()
            if not self.start <= i < self.end
            and self.before.plain[i]
            and self.renamed.get(self.before.functions[i], "") == self.after.functions[j]
        }

    def best(self) -> tuple[int, int] | None:
        candidates = {*self._same_text(), *self._by_diff()}
        if not self._untouched():
            candidates.update(self._alike())
        rated = [(self._worth(*it), it) for it in sorted(candidates)]
        good = [(worth, it) for worth, it in rated if worth is not None]
        if not good:
            return None
        nearest = self._expected()
        return max(good, key=lambda it: (round(it[0], 6), -abs(it[1][0] - nearest)))[1]

    def _expected(self) -> int:
        """Where the start would be if only lines above had come and gone."""
        for distance in range(len(self.before.plain)):
            for at in (self.start - distance, self.start + distance):
                if at in self.mapped:
                    return self.mapped[at] + self.start - at
        return self.start

    def _untouched(self) -> bool:
        """Every line stands where a diff leads, in the same function: no need to look for what is alike."""
        there = [self.mapped.get(i, -1) for i in range(self.start, self.end)]
        at = there[0]
        together = at >= 0 and there == list(range(at, at + len(there)))
        return together and self.telling and self.after.functions[at] == self.function

    # --- Candidates -----------------------------------------------------------------------------------------

    def _same_text(self) -> Iterator[tuple[int, int]]:
        size = len(self.wanted)
        for at in range(len(self.after.plain) - size + 1):
            if self.after.plain[at : at + size] == self.wanted:
                yield at, at + size

    def _by_diff(self) -> Iterator[tuple[int, int]]:
        """From the first to the last line that a diff finds, with what was put in between."""
        inside = [i for i in range(self.start, self.end) if i in self.mapped and self.before.plain[i]]
        there = [self.mapped[i] for i in inside]
        if there:
            yield min(there), max(there) + 1
        low, high = self._gap()
        if there and low < min(there) <= max(there) < high:
            size = self.end - self.start
            first = min(there) - (inside[0] - self.start)
            if low < first and first + size <= high:
                yield first, first + size

    def _gap(self) -> tuple[int, int]:
        """The stretch of the new text between what the lines above and below the range have become."""
        above = next((self.mapped[i] for i in range(self.start - 1, -1, -1) if i in self.mapped), -1)
        after = range(self.end, len(self.before.plain))
        below = next((self.mapped[i] for i in after if i in self.mapped), len(self.after.plain))
        return above, max(above + 1, below)

    def _alike(self) -> Iterator[tuple[int, int]]:
        """Windows of nearly the same length that share words: those that share most, at most `_RATED`."""
        size = len(self.wanted)
        words = frozenset(self._words(self.wanted))
        low, high = self._gap()
        rated: list[tuple[bool, int, int, int]] = []
        for at in range(len(self.after.plain)):
            if not self.after.plain[at]:
                continue
            for length in {size, size - 1, size + 1, size + 2} - {0}:
                end = at + length
                if end <= len(self.after.plain) and self.after.plain[end - 1]:
                    shared = words.intersection(chain.from_iterable(self.after.words[at:end]))
                    if len(shared) >= 0.4 * len(words):
                        near = low < at < high or self.after.functions[at] == self.function != ""
                        rated.append((near, len(shared), at, end))
        for _, _, at, end in nlargest(_RATED, rated):
            yield at, end

    # --- What a candidate is worth --------------------------------------------------------------------------

    def _worth(self, start: int, end: int) -> float | None:
        """None: it is not the same code."""
        window = self.after.plain[start:end]
        if not self.taken.isdisjoint(range(start, end)):
            return None
        text = self._likeness(window)
        around = self._context(start, end)
        same_function = bool(self.function) and self.after.functions[start] == self.function
        low, high = self._gap()
        led = (low < start and end <= high) or any(
            start <= self.mapped.get(i, -1) < end for i in range(self.start, self.end) if self.before.plain[i]
        )
        alone = not led and around < 0.35
        if text == 1.0:
            if alone and not self.telling:
                return None
        elif text < (_ALIKE if led else _ALIKE_ELSEWHERE) or (alone and not same_function):
            return None
        lost = max(0, len(self.wanted) - len(window)) / len(self.wanted)
        return 3.0 * text + 1.5 * around + 0.9 * same_function + 0.5 * led - 0.8 * lost

    @staticmethod
    def _words(lines: Sequence[str]) -> list[str]:
        return [word for line in lines for word in _WORD.findall(line)]

    def _likeness(self, window: Sequence[str]) -> float:
        """1 for the same text; renamed variables count little."""
        if list(window) == self.wanted:
            return 1.0
        ours, theirs = self._words(self.wanted), self._words(window)
        if max(len(ours), len(theirs)) > _WORDS_MAX:
            return min(0.99, SequenceMatcher(None, ours, theirs, autojunk=False).quick_ratio())
        exact = SequenceMatcher(None, ours, theirs, autojunk=False).ratio()
        if exact < 0.3:
            return exact
        shape = SequenceMatcher(None, _shape(ours), _shape(theirs), autojunk=False).ratio()
        return min(0.99, 0.65 * exact + 0.35 * shape)

    def _context(self, start: int, end: int) -> float:
        """How alike the lines around are, 0 to 1; near ones count more, blank ones not at all."""
        return 0.5 * (
            self._side(self.before.plain[: self.start][::-1], self.after.plain[:start][::-1])
            + self._side(self.before.plain[self.end :], self.after.plain[end:])
        )

    @staticmethod
    def _side(old: Sequence[str], new: Sequence[str]) -> float:
        ours = [line for line in old if line][:_REACH]
        theirs = [line for line in new if line][:_REACH]
        if not ours or not theirs:
            return 1.0 if not ours and not theirs else 0.0
        weights = [1 / (distance + 1) for distance in range(len(ours))]
        got = 0.0
        for distance, line in enumerate(ours):
            if line in theirs:
                got += weights[distance] / (1 + 0.3 * abs(theirs.index(line) - distance))
        return got / sum(weights)


def _shape(words: Sequence[str]) -> list[str]:
    return [
        "name" if _NAME.fullmatch(word) and word not in _KEYWORDS else "0" if word[0].isdigit() else word
        for word in words
    ]
