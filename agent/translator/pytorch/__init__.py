"""From a traced PyTorch module (`spec.graph`) to CUDA, without torch: `translator.PyTorchTranslator`."""
