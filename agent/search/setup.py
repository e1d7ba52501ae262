"""From options to a search with a language model: the one door to this package for those who start runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.limits import Limits
from agent.llm.endpoint import Endpoint
from agent.llm.ledger import Ledger
from agent.llm.setup import ModelProtocol, open_policy
from agent.llm.skills import Means
from agent.protocols import Environment, Policy
from agent.search.engine import Record, Search
from agent.search.lanes import Closing, Lanes
from agent.search.options import SearchOptions
from agent.search.strategies import Variation, strategy_of
from sandbox.cancellation import Cancellation

#: Cores that one judgement in the emulator keeps busy, about.
_CORES_EACH = 4


def open_search(
    options: SearchOptions,
    endpoint: Endpoint,
    protocol: ModelProtocol,
    environment: Environment,
    more: Callable[[], Closing],
    limits: Limits,
    cancel: Cancellation,
    *,
    start_from: str | None,
    instruction: str = "",
    record: Record,
    means: Means | None = None,
) -> Search:
    """`more` opens further environments of the same task. Close the search's lanes after the run.

    Raises TaskProblem as `agent.llm.setup.open_policy`.
    """
    lanes = Lanes(environment, more, _lanes(environment.backend, options.parallel), cancel)
    ledger = Ledger(limits, endpoint.price)

    @contextmanager
    def opened(variation: Variation, judge: Environment, told: Record) -> Iterator[Policy]:
        chosen = {"temperature": variation.temperature, "seed": variation.seed}
        varied = endpoint.model_copy(update={k: v for k, v in chosen.items() if v is not None})
        policy, conversation = open_policy(
            varied,
            protocol,
            judge,
            limits,
            cancel,
            start_from=start_from if variation.given else None,
            instruction=instruction,
            record=told,
            ledger=ledger,
            hint=variation.hint,
            means=means,
        )
        try:
            yield policy
        finally:
            conversation.close()

    with opened(Variation(), environment, lambda exchange: None):
        pass  # what is wrong with the endpoint is said before anything begins
    strategy = strategy_of(options, start=start_from is not None)
    return Search(strategy, options.strategy, opened, lanes, limits, cancel, options.parallel, record)


def _lanes(backend: str, parallel: int) -> int:
    """How many candidates are judged at a time: on a card one, so that nothing disturbs its clock."""
    if backend == "gpu":
        return 1
    return max(1, min(parallel, (os.cpu_count() or 1) // _CORES_EACH))
