"""How a policy ends a run by name, where neither its task nor its candidates are the reason."""

from __future__ import annotations

from agent.events import EndReason


class RunEnds(Exception):
    """A limit is reached, or the policy's model cannot be asked any more. The best candidate is kept."""

    def __init__(self, reason: EndReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
