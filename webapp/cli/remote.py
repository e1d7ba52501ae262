"""What the client commands share: following a run, and what its end means."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.events import event_adapter
from sandbox.errors import TaskProblem
from sandbox.types import Evaluation, Problem
from webapp.cli.narrator import Narrator
from webapp.cli.output import (
    BAD_INPUT,
    GOOD,
    NOT_GOOD,
    OWN_FAULT,
    STOPPED,
    complain,
    dump,
    exit_code,
    say,
    summary,
)
from webapp.client import Client
from webapp.client.operations import EvaluationDetail

_NOBODYS_FAULT = {"cancelled": STOPPED, "internal_error": OWN_FAULT, "interrupted": OWN_FAULT}


def follow(client: Client, run_id: str, *, events: bool, cancel_on_interrupt: bool) -> int:
    """Shows a run until it has ended; with `events` prints them as JSON lines. The exit code.

    Ctrl-C detaches and says how to come back; with `cancel_on_interrupt` it stops the run and waits for that.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    narrate = Narrator()
    after_seq = 0
    stopping = False
    while True:
        try:
            for frame in client.run_frames(run_id, after_seq=after_seq, lost=_lost):
                if frame["type"] != "event":
                    continue
                if events:
                    print(_line(frame["event"]), flush=True)
                else:
                    _narrate(narrate, frame["event"])
                after_seq = frame["seq"]
                if frame["event"]["type"] == "run_ended":
                    return run_code(frame["event"])
            raise AssertionError("frames end with run_ended")
        except KeyboardInterrupt:
            if stopping or not cancel_on_interrupt:
                say(f"detached; the run goes on. Come back with: kernelwright watch {run_id}")
                return STOPPED
            stopping = True
            say("stopping the run on the server; Ctrl-C once more leaves it alone")
            client.runs_cancel(run_id)


def run_code(ended: dict[str, Any]) -> int:
    """What a `run_ended` means as an exit code, as of `translate`."""
    if ended["reason"] in _NOBODYS_FAULT:
        return _NOBODYS_FAULT[ended["reason"]]
    if ended["reason"] in ("bad_input", "unsupported") and ended.get("best_turn") is None:
        if ended.get("problem"):
            complain(Problem.model_validate(ended["problem"]), False)
        return BAD_INPUT
    return GOOD if ended.get("best_turn") is not None else NOT_GOOD


def finish_evaluation(made: EvaluationDetail, as_json: bool) -> int:
    """Prints an ended evaluation: with JSON as `kernelwright evaluate` does. The exit code."""
    if made["evaluation"] is not None:
        evaluation = Evaluation.model_validate(made["evaluation"])
        if as_json:
            dump(made["evaluation"])
        else:
            print(summary(evaluation))
        return exit_code(evaluation)
    if made["state"] == "cancelled":
        say(made["message"])
        return STOPPED
    problem = Problem.model_validate(made["problem"] or {"kind": made["state"], "message": made["message"]})
    code = complain(problem, as_json)
    own = problem.kind in ("internal_error", "interrupted", "queue_unavailable", "judge_unavailable")
    return OWN_FAULT if own else code


def write_candidate(source: str, path: Path, *, force: bool) -> None:
    """Raises TaskProblem where it cannot be written, or would replace a file unasked."""
    try:
        with path.open("w" if force else "x") as file:
            file.write(source)
    except FileExistsError:
        raise TaskProblem(
            Problem(kind="file_exists", message=f"{path} is there already", hint="--force writes over it")
        ) from None
    except OSError as error:
        raise TaskProblem(
            Problem(kind="bad_output", message=f"cannot write {path}: {error.strerror}")
        ) from error
    say(f"wrote {os.fspath(path)}")


def _narrate(narrate: Narrator, event: dict[str, Any]) -> None:
    try:
        narrate(event_adapter.validate_python(event))
    except ValidationError:  # a newer server's
        say(f"  {event.get('type', '')}")


def _line(event: dict[str, Any]) -> str:

    return json.dumps(event, separators=(",", ":"))


def _lost(why: str) -> None:
    say(f"the connection broke ({why}); going on")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
