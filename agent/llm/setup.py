"""From settings to a policy: the one door to this package for those who start runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from agent.limits import Limits
from agent.llm.client import ChatClient
from agent.llm.conversation import Conversation
from agent.llm.endpoint import Endpoint
from agent.llm.guard import AddressRefused
from agent.llm.ledger import Ledger
from agent.llm.record import Exchange
from agent.llm.rewrite import RewritePolicy
from agent.llm.skills import Means
from agent.llm.tools import ToolPolicy
from agent.protocols import Environment, Policy
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.types import Problem

ModelProtocol = Literal["rewrite", "tools"]


def open_policy(
    endpoint: Endpoint,
    protocol: ModelProtocol,
    environment: Environment,
    limits: Limits,
    cancel: Cancellation,
    *,
    start_from: str | None = None,
    instruction: str = "",
    record: Callable[[Exchange], None] = lambda exchange: None,
    ledger: Ledger | None = None,
    hint: str = "",
    means: Means | None = None,
) -> tuple[Policy, Conversation]:
    """The policy, and the conversation to be closed after the run.

    `record` gets each exchange with the model. `ledger`: the run's, where several policies share one; else
    the run's clock starts here. `hint`: a way to go. `instruction`: what a person asks for.
    Raises TaskProblem for an address of the wrong form and a cost limit without a price.
    """
    if limits.cost is not None and endpoint.price is None:
        raise TaskProblem(
            Problem(
                kind="no_price",
                message="a cost limit needs the model's price, which is not known",
                hint="give the price of a million tokens, or limit tokens",
            )
        )
    try:
        client = ChatClient(endpoint, cancel=cancel)
    except AddressRefused as error:
        raise TaskProblem(Problem(kind="bad_address", message=str(error))) from error
    conversation = Conversation(client, ledger or Ledger(limits, endpoint.price), record)
    means = means or Means()
    policy: Policy
    if protocol == "tools":
        policy = ToolPolicy(conversation, environment, start_from, hint, instruction, means)
    else:
        spec, target = environment.spec, environment.target
        policy = RewritePolicy(conversation, spec, target, start_from, hint, instruction, means)
    return policy, conversation
