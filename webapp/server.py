"""One process that is the whole product: what must be there before it starts, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import django
import uvicorn

django.setup()

from celery.worker import WorkController  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from webapp.accounts.services import owner_ensure, sign_in_link_create  # noqa: E402
from webapp.asgi import application  # noqa: E402
from webapp.celery import app as celery_app  # noqa: E402
from webapp.common import services_found  # noqa: E402
from webapp.common.jobs import STOP_SECONDS  # noqa: E402
from webapp.language_models.services import environment_model_ensure, keys_seal_again  # noqa: E402
from webapp.language_models.vllm import Vllm, vllm_forgotten  # noqa: E402
from webapp.live import upkeep  # noqa: E402
from webapp.live.worker import busy, stopping  # noqa: E402

Say = Callable[[str], None]

#: What this server has started beside itself, and how each is stopped: also where it ends at once.
at_the_end: list[Callable[[], None]] = []
#: How long open requests and websockets may take to end.
CLOSE_SECONDS = 2
FRAME_BYTES_MAX = 64 * 1024


class Unprepared(Exception):
    """Something that the server needs is not there. The message says what, and what to do."""


def prepare(say: Say) -> None:
    """Database there and migrated, broker and channel layer there, lost runs marked. Raises Unprepared."""
    database = services_found.database()
    if not database.ok:
        raise Unprepared(f"{database.detail}. {database.how}")
    say(f"database: {database.detail}")
    call_command("migrate", verbosity=0, interactive=False)
    for service in (services_found.channel_layer(), services_found.task_queue()):
        if not service.ok:
            raise Unprepared(f"{service.detail}. {service.how}")
        say(f"{service.name.replace('_', ' ')}: {service.detail}")
    environment_model_ensure()
    vllm_forgotten()
    keys_seal_again()
    celery_app.loader.import_default_modules()  # every kind of work registers for upkeep
    if lost := upkeep.reconcile():
        what = "runs and judgements" if lost > 1 else "run or judgement"
        say(f"{lost} unfinished {what} of a server that is gone marked as interrupted")


def run(listener: socket.socket, *, address: str, say: Say, began: float, vllm: Vllm | None = None) -> int:
    """Serves until told to stop, with a vLLM beside it where one is given. The exit code."""
    if vllm is not None:
        at_the_end.append(vllm.stop)
        vllm.start()
    if settings.WORKER_IN_PROCESS:
        start_worker()
    token = sign_in_link_create(user=owner_ensure())
    connections.close_all()
    server = Server(
        uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            ws_max_size=FRAME_BYTES_MAX,
            server_header=False,
        ),
        say,
    )
    print(f"Kernelwright {settings.VERSION} is ready after {time.monotonic() - began:.1f} s: {address}")
    print(f"Sign in with this link, once, within an hour: {address}/enter/{token}", flush=True)
    asyncio.run(server.serve(sockets=[listener]))
    stopping.set()
    for stop in at_the_end:
        stop()
    if not busy.wait_idle(STOP_SECONDS + 2):
        # A thread that does not come to its end would keep the process; its run is marked already.
        sys.stdout.flush()
        os._exit(0)
    return 0


class Server(uvicorn.Server):
    """Uvicorn that stops the runs too: at the first signal all ends orderly, at the second at once."""

    def __init__(self, config: uvicorn.Config, say: Say) -> None:
        super().__init__(config)
        self.say = say

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            # The second signal must still force an end while the worker stops.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, _end_now)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end_now(sig, frame)
        self.say("stopping; once more ends it at once")
        stopping.set()
        self.should_exit = True


def start_worker() -> None:
    """A Celery worker in threads of this process, on a queue in this process."""
    worker: Any = WorkController(
        app=celery_app,
        pool_cls="threads",
        concurrency=settings.WORKER_CONCURRENCY,
        without_heartbeat=True,
        without_mingle=True,
        without_gossip=True,
    )
    # It holds nothing that is not in the database, so it need not be stopped: it ends with the process.
    threading.Thread(target=worker.start, name="worker", daemon=True).start()
    upkeep.upkeep_start()


def _end_now(sig: int, frame: FrameType | None) -> None:
    for stop in at_the_end:
        stop()
    os._exit(128 + sig)
