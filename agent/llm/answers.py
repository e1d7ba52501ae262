"""Reading what a model wrote: the source in its code block, its plan, its lesson.

Small models open fences oddly, name the launcher after the function and forget a header. What is unambiguous
is accepted and put right, and said so; what is not is told back in the words of what was expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agent.llm.wire import Answer

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_LINE = r"^[ \t>*#_-]*{word}[*_ ]*:[*_ ]*(\S[^\n]*)$"
_LAUNCHER = re.compile(r"\bvoid\s+(launch\w*)\s*\(")
_KERNEL = re.compile(r"\b__global__\b")
_FIXED_WIDTH = re.compile(r"\bu?int(?:8|16|32|64)_t\b")
_SENTENCE = 300


@dataclass(frozen=True)
class Reading:
    """What an answer holds. `source` is None where no candidate can be taken from it; `why` then says why."""

    source: str | None = None
    why: str = ""
    plan: str = ""
    lesson: str = ""
    done: str = ""  # nothing more to try, and why
    keep: str = ""  # better left sequential, and why
    repairs: list[str] = field(default_factory=list)


def read(answer: Answer, prototype: str) -> Reading:
    """The candidate, plan and lesson of an answer in the rewrite protocol."""
    text = _THINKING.sub("", answer.text)
    prose, _, _ = _parts(text)
    said = {word: sentence(prose, word) for word in ("PLAN", "LESSON", "DONE", "KEEP")}
    plan, lesson = said["PLAN"], said["LESSON"]
    refused = answer.refusal or answer.finish_reason == "content_filter"
    source = None if refused else _source(text, whole=answer.finish_reason == "stop")
    if source is not None:
        source, repairs = repaired(source, prototype)
        return Reading(source, "", plan, lesson, repairs=repairs)
    if not refused and (said["DONE"] or said["KEEP"]):
        return Reading(plan=plan, lesson=lesson, done=said["DONE"], keep=said["KEEP"])
    return Reading(why=_why_not(answer, prototype), plan=plan, lesson=lesson)


def sentence(prose: str, word: str) -> str:
    """What stands after `WORD:` at a line's start, the last such line, cut to one long sentence."""
    found = re.findall(_LINE.format(word=word), prose, re.MULTILINE | re.IGNORECASE)
    return found[-1].strip(" *_")[:_SENTENCE] if found else ""


def repaired(source: str, prototype: str) -> tuple[str, list[str]]:
    """Puts right what can be meant in one way only; returns the source and what was changed."""
    repairs = []
    names = set(_LAUNCHER.findall(source))
    if names and "launch" not in names and len(names) == 1:
        [name] = names
        source = re.sub(rf"\b{re.escape(name)}\b", "launch", source)
        repairs.append(f"{name} is called launch now")
    launcher = re.search(r"^[ \t]*(?:static[ \t]+)?(void\s+launch\s*\()", source, re.MULTILINE)
    if launcher and 'extern "C"' not in source:
        source = source[: launcher.start()] + 'extern "C" ' + source[launcher.start(1) :]
        repairs.append('launch is extern "C" now')
    if _FIXED_WIDTH.search(source) and not re.search(r"#\s*include\s*<c?stdint(\.h)?>", source):
        source = "#include <stdint.h>\n" + source
        repairs.append("<stdint.h> is included now")
    return source, repairs


def _source(text: str, *, whole: bool) -> str | None:
    """The one source the answer can mean, None where there is none or several."""
    _, blocks, unclosed = _parts(text)
    if unclosed and whole and _balanced(unclosed):  # it forgot to close the fence
        blocks.append(unclosed)
    if not blocks and not unclosed and whole:
        bare = _bare_code(text)
        blocks = [bare] if bare else []
    complete = [b for b in blocks if _KERNEL.search(b) and _LAUNCHER.search(b)]
    if complete:
        return _ended(complete[-1])  # a model that corrects itself means the last
    kernels = [b for b in blocks if _KERNEL.search(b)]
    launchers = [b for b in blocks if _LAUNCHER.search(b)]
    if len(kernels) == 1 and len(launchers) == 1:
        return _ended(kernels[0]) + _ended(launchers[0])
    if len(launchers) == 1 and not kernels:  # a library call, perhaps; the judge knows
        return _ended(launchers[0])
    return None


def _parts(text: str) -> tuple[str, list[str], str]:
    """An answer's prose, its code blocks, and a block that was begun and not closed. Line by line: a pattern
    over the whole would take minutes for some texts."""
    prose: list[str] = []
    blocks: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = _FENCE.fullmatch(line)
        if not fence:
            if opened:
                fence = opened.group(1)
            else:
                prose.append(line)
        elif opened and opened.group(1).startswith(fence) and not opened.group(2).strip():
            blocks.append("".join(block))
            block, fence = [], ""
        else:
            block.append(line + "\n")
    return "\n".join(prose), blocks, "".join(block) if fence else ""


def _bare_code(text: str) -> str | None:
    """An answer that is nothing but code."""
    start = re.search(r"^(#\s*include|__global__|template|extern|static|//)", text, re.MULTILINE)
    if start is None or not _balanced(text[start.start() :]):
        return None
    code = text[start.start() :]
    return code[: code.rindex("}") + 1] if "}" in code else None


def _balanced(code: str) -> bool:
    return "{" in code and code.count("{") == code.count("}")


def _ended(code: str) -> str:
    return code.strip("\n") + "\n"


def _why_not(answer: Answer, prototype: str) -> str:
    expected = f"expected is one ```cuda block with the whole source, with a kernel and {prototype}"
    if answer.refusal or answer.finish_reason == "content_filter":
        words = " ".join((answer.refusal or answer.text).split())[:200]
        return f"the model refused: {words or 'its server filtered the answer'}"
    if answer.finish_reason in ("length", "cut"):
        return f"the answer was cut off before its source was complete: answer shorter; {expected}"
    _, blocks, _ = _parts(answer.text)
    if not blocks:
        return f"the answer holds no code block; {expected}"
    if any(_KERNEL.search(body) for body in blocks):
        return f"the answer holds no launch function that goes with one kernel; {expected}"
    return f"no code block of the answer holds a CUDA kernel; {expected}"
