"""One language model behind an address: where, which, how it is asked, and what it costs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr

from sandbox.types import Data


class Price(Data):
    """Of a million tokens, in any one currency."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Endpoint(Data):
    """The key is never part of a dump or a message."""

    base_url: str  # up to and without "/chat/completions": "https://host/v1"
    model: str
    key: SecretStr | None = None
    # Sampling. None leaves a value to the server.
    temperature: float | None = Field(default=0.2, ge=0)
    top_p: float | None = Field(default=0.9, gt=0, le=1)
    seed: int | None = None
    logprobs: bool = False  # ask for the log-probability of each token, for training
    # Sizes, in tokens.
    context_tokens: int = Field(default=32768, ge=2048)  # prompt and answer together
    answer_tokens: int = Field(default=4096, ge=64)
    price: Price | None = None  # None: cost is not known, and is not guessed
    # Patience.
    attempts: int = Field(default=5, ge=1)  # of one request
    backoff_seconds: float = Field(default=1.0, ge=0)  # the first wait; each next is twice it
    longest_wait_seconds: float = Field(default=60.0, gt=0)  # also of a Retry-After that is obeyed
    connect_seconds: float = Field(default=10.0, gt=0)
    silence_seconds: float = Field(default=120.0, gt=0)  # between two pieces, and before the first
    answer_seconds: float = Field(default=600.0, gt=0)  # a longer answer is cut
    requests_per_minute: float | None = Field(default=None, gt=0)
    requests_at_once: int | None = Field(default=None, ge=1)  # of all runs of one process
    # Addresses that are refused unless allowed here (`agent.llm.guard`).
    allow_loopback: bool = False
    allow_private: bool = False
    # Dialects of the API.
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    usage_in_stream: bool = True  # asks with stream_options, which some servers do not know
    extra: dict[str, Any] = Field(default_factory=dict)  # more fields of the request's body

    def sampling(self) -> dict[str, Any]:
        chosen = {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed}
        return {name: value for name, value in chosen.items() if value is not None} | self.extra
