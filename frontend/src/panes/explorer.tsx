/** Examples and the user's own runs. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ExampleItem, RunSummary } from "../generated/events";
import { active, openExample, openScratch } from "../state/documents";
import { ago } from "../state/format";
import { runSign } from "../state/verdicts";
import * as lists from "../state/lists";
import * as bench from "../state/workbench";
import { CommandButton, Icon, IconButton, Section, SignView } from "./parts";

const filter = signal("");
/** The run whose deletion was asked for once; asking again does it. */
const confirming = signal<string | null>(null);
const minute = signal(Date.now());

export function Explorer(): JSX.Element {
  useEffect(() => {
    const timer = setInterval(() => (minute.value = Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <div class="side-header">
        <h2>Explorer</h2>
        <IconButton title="New source (Alt+N)" icon="new-file" onClick={openScratch} />
        <CommandButton id="open" icon="folder-opened" />
      </div>
      <div class="filter">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter examples and runs"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
        />
      </div>
      <div
        class="scroll"
        onClick={(event) => {
          // Whatever is opened here is seen on the bench.
          if (event.target instanceof Element && event.target.closest(".row")) bench.showBench();
        }}
      >
        {lists.listsFailed.value ? (
          <div class="empty">
            <p>{lists.listsFailed.value}</p>
            <button type="button" class="secondary" onClick={() => void lists.loadLists()}>
              Try again
            </button>
          </div>
        ) : null}
        <Gallery />
        <Runs />
      </div>
    </>
  );
}

function fits(...texts: (string | null)[]): boolean {
  const wanted = filter.value.trim().toLowerCase();
  return !wanted || texts.some((text) => text?.toLowerCase().includes(wanted));
}

function Gallery(): JSX.Element {
  const items = lists.examples.value;
  const fitting = items?.filter((it) => fits(it.title, it.filename, it.language, it.description)) ?? [];
  const recordings = fitting.filter((it) => it.kind === "recording");
  return (
    <Section title="Examples">
      {items === null ? <Skeleton rows={6} /> : null}
      <ul class="list">
        {recordings.map((it) => (
          <li key={it.id}>
            <button
              type="button"
              class="row two-line"
              title={it.description}
              onClick={() => void bench.playRecording(it)}
              aria-current={bench.player.value?.state.value.title === it.title ? "true" : undefined}
            >
              <Icon name="play-circle" />
              <span class="grow">
                <span class="row-title">{it.title}</span>
                <span class="row-sub">
                  <span class="badge recorded">recorded</span> {it.label}
                </span>
              </span>
            </button>
          </li>
        ))}
        {fitting
          .filter((it) => it.kind === "example")
          .map((it) => (
            <ExampleRow key={it.id} item={it} />
          ))}
      </ul>
      {items && !fitting.length ? <p class="empty">No example matches.</p> : null}
    </Section>
  );
}

function ExampleRow({ item }: { item: ExampleItem }): JSX.Element {
  const current = active.value?.origin === `example:${item.id}`;
  return (
    <li>
      <button
        type="button"
        class="row"
        title={item.description}
        aria-current={current ? "true" : undefined}
        onClick={() => openExample(item)}
      >
        <span class={`file-kind ${item.language ?? "c"}`} aria-hidden="true">
          {item.language === "pytorch" ? "py" : "c"}
        </span>
        <span class="grow ellipsis">{item.title}</span>
      </button>
    </li>
  );
}

function Runs(): JSX.Element {
  const list = lists.runs.value;
  const fitting = list?.filter((it) => fits(it.title, it.filename, it.id)) ?? [];
  return (
    <Section title="My runs" aside={list?.length ? String(list.length) + (lists.moreRuns.value ? "+" : "") : null}>
      {list === null && !lists.listsFailed.value ? <Skeleton rows={3} /> : null}
      {list?.length === 0 ? (
        <p class="empty">No run yet. Open an example and press Translate; its turns appear here.</p>
      ) : null}
      {list?.length && !fitting.length ? <p class="empty">No run matches.</p> : null}
      <ul class="list">
        {fitting.map((it) => (
          <RunRow key={it.id} run={it} />
        ))}
      </ul>
      {lists.moreRuns.value && !filter.value ? (
        <button type="button" class="row link-row" onClick={() => void lists.loadMoreRuns()}>
          Show earlier runs
        </button>
      ) : null}
    </Section>
  );
}

function RunRow({ run }: { run: RunSummary }): JSX.Element {
  const sign = runSign(run);
  const live = run.state === "running" || run.state === "queued" || run.state === "cancelling";
  return (
    <li class="with-actions">
      <button
        type="button"
        class="row"
        title={`${run.title}: ${run.message || sign.word}`}
        aria-current={bench.runId.value === run.id ? "true" : undefined}
        onClick={() => void bench.openRun(run.id)}
      >
        <SignView sign={sign} word={false} />
        <span class="grow ellipsis">{run.title}</span>
        <span class="num muted">{aside(run)}</span>
      </button>
      {live ? null : (
        <span class="row-actions">
          {confirming.value === run.id ? (
            <button type="button" class="danger" onClick={() => void bench.removeRun(run.id)} onBlur={() => (confirming.value = null)}>
              Delete
            </button>
          ) : (
            <IconButton title={`Delete the run of ${run.title}…`} icon="trash" onClick={() => (confirming.value = run.id)} />
          )}
        </span>
      )}
    </li>
  );
}

function aside(run: RunSummary): string {
  if (run.state === "queued") return run.queue_position === null ? "queued" : `queued ${ordinal(run.queue_position)}`;
  if (run.state === "cancelling") return "stopping";
  if (run.gpu?.position) return `GPU queue ${ordinal(run.gpu.position)}`;
  if (run.state === "running") return run.turn_count ? `turn ${run.turn_count}` : "starting";
  if (run.score !== null) return run.score.toFixed(0);
  return ago(run.created_at, minute.value);
}

export function ordinal(n: number): string {
  const teens = n % 100;
  const suffix = teens > 10 && teens < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${suffix}`;
}

function Skeleton({ rows }: { rows: number }): JSX.Element {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="skeleton-row" style={{ width: `${60 + ((index * 17) % 30)}%` }} />
      ))}
    </div>
  );
}
