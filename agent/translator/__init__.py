"""The built-in tool that translates: one translator per kind of task, no language model."""

from __future__ import annotations

from agent.protocols import Translator
from sandbox.tasks.base import TaskSpec


def translator_for(spec: TaskSpec) -> Translator:
    """The translator for this kind of task. Imported when needed: the two share nothing at run time."""
    if spec.language == "c":
        from agent.translator.c import CTranslator

        return CTranslator(spec)
    from agent.translator.pytorch import PyTorchTranslator

    return PyTorchTranslator(spec)
