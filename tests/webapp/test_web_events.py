"""How events are stored: numbered without gaps from any number of threads, cleaned, and ended once."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from agent.events import Reflected, RunEnded, TextDelta, TurnStarted
from agent.trajectory import fold
from tests.webapp import scripted
from tests.webapp.conftest import MakeRun
from webapp.common.plain import plain
from webapp.runs import selectors, serializers, services
from webapp.runs.models import AgentRun, RunEvent


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gaps_whoever_appends(make_run: MakeRun) -> None:
    run = make_run()
    each = 15

    def append(thread: int) -> None:
        for number in range(each):
            services.run_event_append(run=run, event=Reflected(turn=1, text=f"{thread}.{number}"))
        connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(append, range(4)))
    records = selectors.events_after(run.pk, 0, 1000)
    assert [record.seq for record in records] == list(range(1, 4 * each + 1))
    for thread in range(4):
        mine = [r.payload["text"] for r in records if r.payload["text"].startswith(f"{thread}.")]
        assert mine == [f"{thread}.{number}" for number in range(each)]


def test_nothing_follows_the_end(make_run: MakeRun) -> None:
    run = make_run()
    services.run_event_append(run=run, event=RunEnded(reason="finished", message="done"))
    with pytest.raises(services.RunHasEnded):
        services.run_event_append(run=run, event=RunEnded(reason="cancelled", message="late"))
    services.agent_run_end(run=run, reason="interrupted", message="late")
    run.refresh_from_db()
    assert (run.state, run.last_seq) == ("finished", 1)


def test_events_are_stored_all_or_none(make_run: MakeRun) -> None:
    run = make_run()
    end = RunEnded(reason="finished", message="done")
    with pytest.raises(services.RunHasEnded):
        services.run_events_append(run=run, events=[end, Reflected(turn=1, text="late")])
    run.refresh_from_db()
    assert (run.state, run.last_seq, RunEvent.objects.count()) == ("queued", 0, 0)


def test_text_as_it_is_written_is_never_stored(make_run: MakeRun) -> None:
    run = make_run()
    with pytest.raises(ValueError, match="never stored"):
        services.run_event_append(run=run, event=TextDelta(turn=1, text="a"))
    services.run_events_send(run=run, events=[TextDelta(turn=1, text="a")])
    assert not RunEvent.objects.exists()


def test_what_databases_refuse_is_replaced_and_read_back_as_an_event(make_run: MakeRun) -> None:
    run = make_run()
    record = services.run_event_append(run=run, event=Reflected(turn=1, text="a\x00b\ud800c\u00e9"))
    record.refresh_from_db()
    assert selectors.event_of(record) == Reflected(turn=1, text="a\ufffdb?c\u00e9")
    assert plain({"a": [math.inf, -math.inf, 1.5, (1,)]}) == {"a": ["Infinity", "-Infinity", 1.5, [1]]}
    assert plain(math.nan) == "NaN"


def test_what_the_run_says_is_what_its_events_say(make_run: MakeRun) -> None:
    """A list is drawn from the run's row, the page from its events: they must never disagree."""
    run = make_run(done=True)
    detail = serializers.run_detail(run)
    trajectory = fold(selectors.event_of(record) for record in selectors.events_after(run.pk, 0, 1000))
    assert trajectory == selectors.run_trajectory(run)
    assert trajectory.best is not None
    assert trajectory.ended is not None
    assert trajectory.best.evaluation is not None
    assert (detail.best_turn, detail.score) == (trajectory.best.number, trajectory.best.evaluation.score)
    assert (detail.turn_count, detail.reason) == (len(trajectory.turns), trajectory.ended.reason)


def test_a_queued_run_is_claimed_once(make_run: MakeRun) -> None:
    run = make_run()
    assert services.agent_run_claim(run_id=run.pk) is not None
    assert services.agent_run_claim(run_id=run.pk) is None
    services.agent_run_execute(run_id=run.pk, translate=scripted.translate)
    assert not RunEvent.objects.exists()


def test_a_deleted_run_takes_no_events(make_run: MakeRun) -> None:
    run = make_run()
    AgentRun.objects.filter(pk=run.pk).delete()
    with pytest.raises(services.RunHasEnded):
        services.run_event_append(run=run, event=TurnStarted(turn=1, title="x", base_turn=None))
    services.agent_run_end(run=run, reason="interrupted", message="gone")
