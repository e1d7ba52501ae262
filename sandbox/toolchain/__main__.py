"""`python -m sandbox.toolchain` prints which nvcc would be used, or exits 1 with how to get one."""

import sys

from sandbox.errors import ToolchainMissing
from sandbox.toolchain.find import find_toolkit

try:
    toolkit = find_toolkit()
except ToolchainMissing as error:
    sys.exit(str(error))
print(f"{toolkit.version} at {toolkit.nvcc}")
