"""PyTorch modules in KernelBench's form as tasks: traced and run in the jail, judged outside it."""
