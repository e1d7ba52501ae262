/**
 * A run as the page shows it, folded from its events: the same fold for a live run, a reload and a recording.
 * Pure: `fold` never changes the view it is given, and shares what did not change.
 */
import type {
  Answered,
  Compilation,
  Edited,
  Evaluation,
  Metrics,
  PlanSummary,
  RangeEdit,
  RunEnded,
  RunEvent,
  RunStarted,
  Spent,
  Timing,
  ToolUsed,
  TurnStarted,
  Verification,
} from "../generated/events";

/** An event with its number and its time in milliseconds (since the epoch, or since a recording's start). */
export interface Timestamped {
  seq: number;
  at: number;
  event: RunEvent;
}

/** Lines [start, end) of the current text, 1-based. */
export interface LineRange {
  start: number;
  end: number;
}

export interface LogChunk {
  stream: string;
  text: string;
}

/** One request of a language model that has come to something: an answer, a tool that it used, a wait. */
export type Step =
  | { kind: "answer"; answer: Answered }
  | { kind: "tool"; tool: ToolUsed }
  | { kind: "wait"; attempt: number; of: number; why: string };

export interface StageView {
  turn: number;
  stage: string;
  detail: string;
  done: number | null;
  of: number | null;
  /** The card at work, where it is another machine's. */
  device: string;
  /** When this stage began, in the events' own clock. */
  since: number;
}

export interface TurnView {
  number: number;
  title: string;
  baseTurn: number | null;
  /** Of a search: 1 where there is one trajectory, 0 for a given kernel. */
  branch: number;
  /** A second parent. */
  alsoFrom: number | null;
  /** An earlier turn with the same candidate, which alone was judged. */
  sameAs: number | null;
  /** The agent ended its branch in this turn, without a candidate. */
  ending: "finish" | "keep" | null;
  startedAt: number;
  file: string;
  /** The candidate as far as it has been written. */
  text: string;
  version: number;
  /** What the last edits touched; empty once the candidate was handed to the judge. */
  changed: LineRange[];
  writing: boolean;
  /** An edit did not fit the text we have: what is shown may be old until the whole candidate arrives. */
  outOfStep: boolean;
  /** What a language model did in this turn, in order; empty for the built-in policy. */
  steps: readonly Step[];
  logs: LogChunk[];
  compile: Compilation | null;
  plan: PlanSummary | null;
  verification: Verification | null;
  metrics: Metrics | null;
  timing: Timing | null;
  evaluation: Evaluation | null;
  reflection: string;
  seconds: number | null;
  /** The run ended before this turn was judged. */
  abandoned: boolean;
}

export interface RunView {
  started: RunStarted | null;
  startedAt: number | null;
  turns: readonly TurnView[];
  stage: StageView | null;
  bestTurn: number | null;
  ended: RunEnded | null;
  /** Output before the first turn (building the reference). */
  logs: readonly LogChunk[];
  /** What was paid for, one for each request of a language model. */
  spent: readonly Spent[];
  lastSeq: number;
  lastAt: number | null;
  events: readonly Timestamped[];
}

export const EMPTY_RUN: RunView = {
  started: null,
  startedAt: null,
  turns: [],
  stage: null,
  bestTurn: null,
  ended: null,
  logs: [],
  spent: [],
  lastSeq: 0,
  lastAt: null,
  events: [],
};

/** Fold events in, in order. Numbers that are already in the view are dropped; 0 marks an unnumbered event. */
export function fold(view: RunView, incoming: readonly Timestamped[]): RunView {
  let next = view;
  const kept: Timestamped[] = [];
  let lastSeq = view.lastSeq;
  for (const item of incoming) {
    if (item.seq !== 0 && item.seq <= lastSeq) continue;
    next = apply(next, item);
    if (item.seq === 0) continue;
    lastSeq = item.seq;
    kept.push(item);
  }
  if (next === view && kept.length === 0) return view;
  return {
    ...next,
    lastSeq,
    lastAt: kept.at(-1)?.at ?? view.lastAt,
    events: kept.length ? [...view.events, ...kept] : view.events,
  };
}

function apply(view: RunView, { event, at }: Timestamped): RunView {
  switch (event.type) {
    case "run_started":
      return { ...view, started: event, startedAt: at };
    case "turn_started":
      return {
        ...view,
        stage: null,
        turns: [...view.turns, newTurn(event, at, view.turns.at(-1))],
      };
    case "text_delta": // not part of the view: state/stream.ts
      return view;
    case "answered":
      return addStep(view, event.turn, { kind: "answer", answer: event });
    case "tool":
      return addStep(view, event.turn, { kind: "tool", tool: event });
    case "spent":
      return { ...view, spent: [...view.spent, event] };
    case "edited":
      return change(view, event.turn, (turn) => edit(turn, event));
    case "action":
      if (event.action === "none") return view;
      if (event.action !== "submit") {
        const ending = event.action;
        return change(view, event.turn, (turn) => ({ ...turn, ending, reflection: event.reason, writing: false }));
      }
      return change(view, event.turn, (turn) => ({
        ...turn,
        text: event.source,
        changed: [],
        writing: false,
        outOfStep: false,
      }));
    case "log":
      if (!view.turns.some((turn) => turn.number === event.turn)) {
        return { ...view, logs: addLog(view.logs, event.stream, event.text) };
      }
      return change(view, event.turn, (turn) => ({ ...turn, logs: addLog(turn.logs, event.stream, event.text) }));
    case "stage": {
      const same = view.stage?.stage === event.stage && view.stage.turn === event.turn;
      const { turn, stage, detail, done, of, device } = event;
      if (stage === "model_wait") view = addStep(view, turn, { kind: "wait", attempt: done ?? 0, of: of ?? 0, why: detail.split("; attempt ")[0] ?? "" });
      return { ...view, stage: { turn, stage, detail, done, of, device, since: same ? (view.stage?.since ?? at) : at } };
    }
    case "compiled":
      return change(view, event.turn, (turn) => ({ ...turn, compile: event.compile, plan: event.plan }));
    case "verified":
      return change(view, event.turn, (turn) => ({ ...turn, verification: event.verification }));
    case "measured":
      return change(view, event.turn, (turn) => ({ ...turn, metrics: event.metrics }));
    case "timed":
      return change(view, event.turn, (turn) => ({ ...turn, timing: event.timing }));
    case "reflected":
      return change(view, event.turn, (turn) => ({ ...turn, reflection: event.text }));
    case "turn_ended": {
      const { evaluation } = event;
      const ended = change(view, event.turn, (turn) => ({
        ...turn,
        evaluation,
        compile: evaluation.compile ?? turn.compile,
        plan: evaluation.plan ?? turn.plan,
        verification: evaluation.verification ?? turn.verification,
        metrics: evaluation.metrics ?? turn.metrics,
        timing: evaluation.timing ?? turn.timing,
        seconds: event.seconds,
        sameAs: event.same_as,
        writing: false,
        changed: [],
      }));
      return { ...ended, stage: null, bestTurn: event.best_turn };
    }
    case "run_ended":
      return {
        ...view,
        stage: null,
        ended: event,
        bestTurn: event.best_turn ?? view.bestTurn,
        turns: view.turns.map((turn) =>
          turn.evaluation || turn.ending ? turn : { ...turn, writing: false, changed: [], abandoned: true },
        ),
      };
  }
}

function newTurn(event: TurnStarted, startedAt: number, before: TurnView | undefined): TurnView {
  return {
    number: event.turn,
    title: event.title,
    baseTurn: event.base_turn,
    branch: event.branch,
    alsoFrom: event.also_from,
    sameAs: null,
    ending: null,
    startedAt,
    // Edits count on from the version before: the editor goes on from what it shows.
    file: before?.file ?? "kernel.cu",
    text: before?.text ?? "",
    version: before?.version ?? 0,
    changed: [],
    writing: true,
    outOfStep: false,
    steps: [],
    logs: [],
    compile: null,
    plan: null,
    verification: null,
    metrics: null,
    timing: null,
    evaluation: null,
    reflection: "",
    seconds: null,
    abandoned: false,
  };
}

function change(view: RunView, number: number, update: (turn: TurnView) => TurnView): RunView {
  const index = view.turns.findLastIndex((turn) => turn.number === number);
  const turn = view.turns[index];
  if (!turn) return view;
  return { ...view, turns: view.turns.with(index, update(turn)) };
}

function addStep(view: RunView, number: number, step: Step): RunView {
  return change(view, number, (turn) => ({ ...turn, steps: [...turn.steps, step] }));
}

function addLog(logs: readonly LogChunk[], stream: string, text: string): LogChunk[] {
  const last = logs.at(-1);
  if (last?.stream === stream) return [...logs.slice(0, -1), { stream, text: last.text + text }];
  return [...logs, { stream, text }];
}

function edit(turn: TurnView, event: Edited): TurnView {
  const base = event.base_version === 0 ? "" : event.base_version === turn.version ? turn.text : null;
  if (base === null) return { ...turn, file: event.file, outOfStep: true };
  const applied = applyEdits(base, event.edits);
  if (!applied) return { ...turn, file: event.file, outOfStep: true };
  const following = event.base_version === turn.version && turn.changed.length > 0;
  return {
    ...turn,
    file: event.file,
    text: applied.text,
    version: event.version,
    changed: following ? merge(shift(turn.changed, event.edits), applied.changed) : applied.changed,
    outOfStep: false,
  };
}

/** `edits` in descending order of line, as the server sends them. Null when they do not fit. */
export function applyEdits(base: string, edits: readonly RangeEdit[]): { text: string; changed: LineRange[] } | null {
  const lines = splitLines(base);
  const changed: LineRange[] = [];
  for (const { start_line: start, end_line: end, text } of edits) {
    if (start < 1 || end < start || end > lines.length + 1) return null;
    const fresh = splitLines(text);
    lines.splice(start - 1, end - start, ...fresh);
    const moved = fresh.length - (end - start);
    for (const range of changed) {
      range.start += moved;
      range.end += moved;
    }
    if (fresh.length) changed.unshift({ start, end: start + fresh.length });
  }
  return { text: lines.join(""), changed };
}

/** Lines with their line ends kept, as Python's `splitlines(keepends=True)` gives them for \n. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function shift(ranges: readonly LineRange[], edits: readonly RangeEdit[]): LineRange[] {
  return ranges.map((range) => {
    let moved = 0;
    for (const { start_line: start, end_line: end, text } of edits) {
      if (end <= range.start) moved += splitLines(text).length - (end - start);
    }
    return { start: range.start + moved, end: range.end + moved };
  });
}

function merge(older: readonly LineRange[], newer: readonly LineRange[]): LineRange[] {
  const sorted = [...older, ...newer].map((range) => ({ ...range })).sort((a, b) => a.start - b.start);
  const merged: LineRange[] = [];
  for (const range of sorted) {
    const last = merged.at(-1);
    if (last && range.start <= last.end) last.end = Math.max(last.end, range.end);
    else merged.push(range);
  }
  return merged;
}
