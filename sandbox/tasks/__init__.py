"""What is to be translated, with its inputs and reference. Two kinds so far: C function, PyTorch module."""
