"""Run what nvcc made without a GPU: PTX lowered to LLVM vector code, one warp at a time."""
