"""Serves one card of this machine to a server elsewhere: one process a card.

Needs KERNELWRIGHT_DATABASE_URL and KERNELWRIGHT_BROKER_URL, the server's, and KERNELWRIGHT_SERVER_URL with
KERNELWRIGHT_WORKER_TOKEN unless it shares the server's data folder.

Example: kernelwright gpu-worker --card 0
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec

from sandbox.doctor import examine
from sandbox.gpu.client import present
from sandbox.gpu.devices import Device, NoDevice
from webapp.cli.output import BAD_INPUT, GOOD, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--card", metavar="N", help="which: its number or UUID, as doctor lists them (default: the only one)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="evaluations at once: the others compile and compare while one has the card (default 1; more of "
        "them disturb the times of the user's own program, which is timed on the processor)",
    )


def main(options: argparse.Namespace) -> int:
    try:
        device = chosen(present(), options.card)
    except NoDevice as missing:
        say(f"kernelwright: {missing}{f'; {missing.how}' if missing.how else ''}")
        return BAD_INPUT
    if options.jobs < 1:
        say("kernelwright: --jobs has to be 1 or more")
        return BAD_INPUT
    if find_spec("django") is None:
        say("kernelwright: Django is not installed; pip install 'kernelwright[web]'")
        return BAD_INPUT
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    return _serve(device, options.jobs)


def chosen(found: list[Device], wished: str | None) -> Device:
    """Raises NoDevice."""
    if wished is None and len(found) == 1:
        return found[0]
    device = next((it for it in found if wished in (str(it.index), it.uuid)), None)
    if device is None:
        names = ", ".join(f"{it.index}: {it.name}" for it in found)
        said = "there are several cards" if wished is None else f"there is no card {wished}"
        raise NoDevice(f"{said} ({names})", "say --card with one of these numbers")
    return device


def _serve(device: Device, jobs: int) -> int:
    from webapp.cards import queue, services, worker
    from webapp.celery import app
    from webapp.live.worker import stopping, worker_name

    if missing := _missing():
        for line in missing:
            say(f"kernelwright: {line}")
        return BAD_INPUT
    card = services.card_lease(device=device, worker=worker_name())
    if card is None:
        say(f"kernelwright: {device.name} {device.uuid} is served by another worker; it ends with that one")
        return BAD_INPUT
    worker.serving = worker.Serving(device, card)
    state = f"OUT OF SERVICE: {card.quarantine}" if card.quarantine else f"code for {', '.join(card.targets)}"
    say(f"serving {card}, {device.uuid}, {state}")
    try:
        app.worker_main(
            [
                "worker",
                f"--queues={','.join(queue.queue_of(target) for target in card.targets)}",
                "--pool=threads",
                f"--concurrency={jobs}",
                "--prefetch-multiplier=1",
                f"--hostname={device.uuid}@%h",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "--loglevel=INFO",
            ]
        )
    finally:
        stopping.set()
        services.card_release(card=card)
    return GOOD


def _missing() -> list[str]:
    """What keeps this process from serving, one line each."""
    from django.conf import settings

    from webapp.cards import artifacts
    from webapp.common import services_found

    if settings.WORKER_IN_PROCESS:
        return ["a GPU worker needs the server's broker: set KERNELWRIGHT_BROKER_URL"]
    services = [services_found.database(), services_found.task_queue()]
    lines = [f"{it.detail}. {it.how}" for it in services if not it.ok]
    lines += [f"{it.name}: {it.detail}; {it.how}" for it in examine() if it.needed and not it.ok]
    try:
        artifacts.store().check()
    except artifacts.ArtifactProblem as problem:
        lines.append(str(problem))
    return lines
