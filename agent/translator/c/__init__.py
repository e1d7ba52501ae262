"""C functions to CUDA: loops analysed, kernels emitted, improvements argued from measurements."""

from agent.translator.c.translator import CTranslator

__all__ = ["CTranslator"]
