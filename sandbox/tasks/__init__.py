"""What is to be translated, with its inputs and its reference. Two kinds so far: C function, PyTorch module."""
