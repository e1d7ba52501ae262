"""The words of PTX: comments, names, literals, operand lists."""

from __future__ import annotations

import re
import struct

from sandbox.ptx.model import Immediate, PtxError

IDENTIFIER = r"[A-Za-z_$%][\w$.]*"
SPACE = re.compile(r"\s*")
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"(-?)0([fFdD])([0-9a-fA-F]+)$")
_DECIMAL = re.compile(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?$")


def strip_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)


def skip_space(text: str, position: int) -> int:
    match = SPACE.match(text, position)
    assert match is not None
    return match.end()


def statement(text: str, position: int) -> tuple[str, int]:
    """What stands before the next semicolon, and the position after it."""
    end = text.find(";", position)
    if end < 0:
        raise PtxError(f"statement without an end: {text[position : position + 60]!r}")
    return text[position:end].strip(), end + 1


def is_type(name: str) -> bool:
    """Whether `type_bytes` knows it."""
    return name.removesuffix("x2").lstrip("abcdefghijklmnopqrstuvwxyz").isdigit()


def type_bytes(name: str) -> int:
    """Size of a PTX type: "b32" -> 4, "f16x2" -> 4."""
    if name.endswith("x2"):
        return 2 * type_bytes(name[:-2])
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    if not digits.isdigit():
        raise PtxError(f"unknown type .{name}")
    return int(digits) // 8


def number(text: str) -> Immediate | None:
    """An integer or floating-point literal, or None."""
    if _NUMBER.match(text):
        digits = text.rstrip("U")
        sign = -1 if digits[0] == "-" else 1
        digits = digits.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        return Immediate(sign * int(digits, 8 if octal else 0))
    match = _FLOAT.match(text)
    if match:
        bits = 32 if match[2] in "fF" else 64
        value = int(match[3], 16)
        return Immediate(value ^ (1 << (bits - 1)) if match[1] else value, bits)
    if _DECIMAL.match(text):
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    return None


def split_operands(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts
