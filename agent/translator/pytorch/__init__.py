"""From a traced PyTorch module (`spec.graph`) to CUDA, without torch."""

from agent.translator.pytorch.translator import PyTorchTranslator

__all__ = ["PyTorchTranslator"]
