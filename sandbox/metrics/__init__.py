"""Structural metrics: pure functions from what was counted and what ptxas said to numbers, scores and
sentences.

One module per family; each says its formula. `measure` puts them together.
"""

from sandbox.metrics.intensity import compulsory_bytes
from sandbox.metrics.measure import WEIGHTS, measure

__all__ = ["WEIGHTS", "compulsory_bytes", "measure"]
