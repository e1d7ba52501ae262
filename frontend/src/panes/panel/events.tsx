import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { RunEvent } from "../../generated/events";
import type { Timestamped } from "../../state/run";
import { run } from "../../state/workbench";

const filter = signal("");
const open = signal<number | null>(null);
/** A long run has thousands of events: the newest are shown, all are searched. */
const MOST = 400;

/** The raw stream, as it was stored: number, time, type. */
export function EventsTab(): JSX.Element {
  const { events, startedAt } = run.value;
  const wanted = filter.value.trim().toLowerCase();
  const fitting = wanted ? events.filter((it) => JSON.stringify(it.event).toLowerCase().includes(wanted)) : events;
  const visible = fitting.slice(-MOST);
  const zero = startedAt ?? events[0]?.at ?? 0;
  return (
    <div class="events">
      <div class="events-bar">
        <input
          type="search"
          aria-label="Filter events"
          placeholder="Filter: type, text, turn"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
        />
        <span class="muted num">
          {fitting.length} of {events.length}
          {fitting.length > MOST ? `, newest ${MOST}` : ""}
        </span>
      </div>
      {events.length ? null : <p class="empty">Every event of the run appears here as it is stored.</p>}
      <ul class="list event-list">
        {visible.map((it) => (
          <EventRow key={it.seq} item={it} zero={zero} />
        ))}
      </ul>
    </div>
  );
}

function EventRow({ item, zero }: { item: Timestamped; zero: number }): JSX.Element {
  const expanded = open.value === item.seq;
  return (
    <li>
      <button
        type="button"
        class="row event-row"
        aria-expanded={expanded}
        onClick={() => (open.value = expanded ? null : item.seq)}
      >
        <span class="num muted seq">{item.seq}</span>
        <span class="num muted time">+{((item.at - zero) / 1000).toFixed(2)} s</span>
        <code class="type">{item.event.type}</code>
        <span class="num muted turn">{"turn" in item.event && item.event.turn ? `turn ${item.event.turn}` : ""}</span>
        <span class="grow ellipsis muted">{summary(item.event)}</span>
      </button>
      {expanded ? <pre class="event-json">{JSON.stringify(item.event, null, 2)}</pre> : null}
    </li>
  );
}

function summary(event: RunEvent): string {
  switch (event.type) {
    case "run_started":
      return `${event.task.name}, ${event.policy}, ${event.backend}, ${event.target}`;
    case "turn_started":
      return event.title;
    case "text_delta":
    case "reflected":
      return event.text;
    case "spent":
      return `${event.prompt_tokens} + ${event.completion_tokens} tokens${event.cost === null ? "" : `, cost ${event.cost.toFixed(4)}`}`;
    case "answered":
      return `${event.model}, ${event.completion_tokens} tokens: ${event.plan || event.text}`;
    case "tool":
      return `${event.tool}${event.ok ? "" : " refused"}: ${event.observation}`;
    case "log":
      return `${event.stream}: ${event.text}`;
    case "edited":
      return `${event.file} version ${event.base_version} → ${event.version}, ${event.edits.map((it) => `lines ${it.start_line}–${it.end_line}`).join(", ")}`;
    case "action":
      return event.action === "submit" ? "handed to the judge" : event.reason;
    case "stage":
      return [event.stage, event.detail, event.of === null ? "" : `${event.done ?? 0} of ${event.of}`].filter(Boolean).join(" ");
    case "compiled":
      return `${event.compile.seconds.toFixed(2)} s, ${event.compile.kernels.map((it) => `${it.name} ${it.registers} registers`).join(", ")}`;
    case "verified":
      return `${event.verification.draws} draws, ${event.verification.checks.filter((it) => !it.passed).length} checks failed`;
    case "measured":
      return `score ${event.metrics.structural_score.toFixed(1)}`;
    case "timed":
      return `${event.timing.candidate_us.median.toPrecision(4)} µs`;
    case "turn_ended":
      return `${event.evaluation.verdict}: ${event.evaluation.message}`;
    case "run_ended":
      return `${event.reason}: ${event.message}`;
  }
}
