/** The run on the bench: where its events come from, which turn is shown, and what can be done with it. */
import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { ENDED_STATES, type ExampleItem, type RunDetail, type RunSummary, type TextDelta } from "../generated/events";
import * as api from "../protocol/api";
import type { Bootstrap } from "../protocol/bootstrap";
import { ResumingSocket, type Connection } from "../protocol/socket";
import { agentRequest, knownAgent, NO_LIMITS, turnsDefault, turnsMax, type AgentSettings } from "./agents";
import * as docs from "./documents";
import { tooLarge } from "./files";
import { openPanel } from "./layout";
import { loadLists, noteRun, runs } from "./lists";
import type { LineView } from "./metrics";
import { announce, say, sayError } from "./notices";
import { goTo, page } from "./page";
import { Player } from "./player";
import { EMPTY_RUN, fold, type RunView, type Timestamped } from "./run";
import { load, save } from "./storage";
import { addDeltas, resetStream, settle } from "./stream";
import { endingSign, RUNNING, verdictSign } from "./verdicts";
import { slug } from "./workspaces";

export interface Settings extends AgentSettings {
  backend: string;
  target: string;
  turns: number;
}

export const bootstrap = signal<Bootstrap | null>(null);
export const settings = signal<Settings>({ ...NO_LIMITS, policy: "builtin", model: "", backend: "auto", target: "", turns: 8 });

export const runId = signal<string | null>(null);
export const detail = signal<RunDetail | null>(null);
export const run = signal<RunView>(EMPTY_RUN);
export const player = signal<Player | null>(null);
export const connection = signal<Connection | null>(null);
/** From pressing Translate until the server has taken the run. */
export const submitting = signal(false);
export const stopping = signal(false);
export const loadingRun = signal(false);

/** Null: follow the newest turn while the run goes on, and stand on the best once it has ended. */
const chosenTurn = signal<number | null>(null);
export const diffOn = signal(false);
export const lineView = signal<LineView>("telling");
/** A place that a pane asks an editor to show; `nonce` makes asking twice a change. */
export const reveal = signal<{ where: "source" | "candidate"; line: number; column: number; nonce: number } | null>(null);
export const cursor = signal<{ line: number; column: number; where: "source" | "candidate" } | null>(null);

export const turns = computed(() => run.value.turns);
export const shown = computed(() => {
  const all = turns.value;
  const { ended, bestTurn } = run.value;
  const wanted = chosenTurn.value ?? (ended ? bestTurn : null);
  return all.find((it) => it.number === wanted) ?? all.at(-1) ?? null;
});
/** What the diff compares with; null: the turn before. */
export const diffAgainst = signal<number | null>(null);
export const previous = computed(() => {
  const turn = shown.value;
  if (!turn) return null;
  const wanted = diffAgainst.value === turn.number ? null : diffAgainst.value;
  return turns.value.find((it) => it.number === (wanted ?? turn.number - 1)) ?? null;
});
export const following = computed(() => chosenTurn.value === null);
export const running = computed(
  () => runId.value !== null && run.value.ended === null && (detail.value === null || !ENDED_STATES.includes(detail.value.state)),
);
export const busy = computed(() => submitting.value || loadingRun.value || running.value);

let socket: ResumingSocket | null = null;
let pending: Timestamped[] = [];
let pendingText: TextDelta[] = [];
let frame: number | null = null;
let nonce = 0;

export function start(boot: Bootstrap): void {
  const kept = load("settings") as Partial<Settings> | null;
  const { options } = boot;
  const known = <T>(value: T | undefined, among: readonly T[], otherwise: T) =>
    value !== undefined && among.includes(value) ? value : otherwise;
  const agent = knownAgent(options, kept);
  batch(() => {
    bootstrap.value = boot;
    settings.value = {
      ...agent,
      backend: known(kept?.backend, options.backends, options.backends[0] ?? "auto"),
      target: known(kept?.target, options.targets, options.default_target),
      turns: Math.min(kept?.turns ?? turnsDefault(options, agent.policy), turnsMax(options, agent.policy)),
    };
  });
  if (boot.runId) void openRun(boot.runId, false);
  let first = true;
  effect(() => {
    const id = docs.activeId.value;
    if (first || id === null) first = false;
    else untracked(followDocument);
  });
}

/** The bench follows the tab: its last run, or nothing. What runs goes on at the server. */
export function followDocument(): void {
  const document = docs.active.value;
  if (!document || document.recorded) return;
  docs.dropRecorded();
  if (player.value === null && document.runId === runId.value) return;
  if (document.runId) void openRun(document.runId);
  else clearBench();
}

export function closeDocument(id: string): void {
  const document = docs.documents.value.find((it) => it.id === id);
  if (document?.recorded) clearBench();
  const reopen = docs.close(id);
  if (!document || !reopen || document.recorded) return;
  if (docs.active.value === null) clearBench();
  say(`${document.filename} closed.`, "info", { title: "Undo", run: reopen });
}

export function setSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change };
  save("settings", settings.value);
}

/** Leaves the bench empty; a live run goes on at the server. */
export function clearBench(push = true): void {
  socket?.close();
  socket = null;
  player.value?.close();
  pending = [];
  pendingText = [];
  batch(() => {
    resetStream();
    player.value = null;
    runId.value = null;
    detail.value = null;
    run.value = EMPTY_RUN;
    connection.value = null;
    chosenTurn.value = null;
    diffOn.value = false;
    diffAgainst.value = null;
    stopping.value = false;
  });
  if (push) setAddress(null);
}

export async function translate(startFrom?: string): Promise<void> {
  const document = docs.active.value;
  const boot = bootstrap.value;
  if (!document || !boot || submitting.value) return;
  if (document.recorded) {
    say("This is a recorded run's source. Open an example or paste your own to translate it.");
    return;
  }
  if (!document.text.trim()) {
    say("There is nothing to translate yet. Paste C or PyTorch code, or open an example.");
    return;
  }
  const large = tooLarge(document.text, boot.options.source_bytes_max);
  if (large) {
    say(large, "error");
    return;
  }
  if (docs.kind(document) === "cuda") {
    say(
      "This is already CUDA. Open the C or PyTorch program that it implements, then open this file as its starting point.",
      "error",
    );
    return;
  }
  const own = startFrom ?? document.startFrom?.source ?? null;
  const { backend, target, turns: limit } = settings.value;
  submitting.value = true;
  announce("Translating");
  try {
    const created = await api.createRun({
      source: document.text,
      filename: document.filename,
      ...agentRequest(boot.options, settings.value),
      backend: backend as "auto" | "emulator" | "gpu",
      ...(settings.value.profile ? {} : { turns: limit }),
      ...(target ? { target } : {}),
      ...(document.entry ? { entry: document.entry } : {}),
      ...(Object.keys(document.inputs).length ? { inputs: document.inputs } : {}),
      ...(own ? { start_from: own } : {}),
      ...(slug.value ? { workspace: slug.value } : {}),
    });
    docs.update(document.id, { runId: created.id, runText: document.text });
    follow(created, true);
  } catch (error) {
    sayError(error, () => void translate(startFrom));
  } finally {
    submitting.value = false;
  }
}

/** Put a new run on the bench and listen to it. */
function follow(summary: RunSummary, push: boolean): void {
  clearBench(false);
  runId.value = summary.id;
  noteRun(summary);
  if (push) setAddress(summary.id);
  listen(summary.id, 0);
  void refreshDetail(summary.id);
}

export async function openRun(id: string, push = true): Promise<void> {
  clearBench(false);
  runId.value = id;
  loadingRun.value = true;
  try {
    const found = await api.getRun(id);
    if (runId.value !== id) return;
    detail.value = found;
    noteRun(found);
    docs.openRunSource(found);
    if (push) setAddress(id);
    listen(id, 0);
  } catch (error) {
    if (runId.value !== id) return;
    clearBench();
    const owner = docs.documents.value.find((it) => it.runId === id);
    if (owner && error instanceof api.ApiError && error.status === 404) docs.update(owner.id, { runId: null, runText: null });
    sayError(error, () => void openRun(id, push));
  } finally {
    loadingRun.value = false;
  }
}

async function refreshDetail(id: string): Promise<void> {
  try {
    const found = await api.getRun(id);
    if (runId.value === id) detail.value = found;
    noteRun(found);
  } catch {
    // The events say the same; the list is only a little late.
  }
}

function listen(id: string, afterSeq: number): void {
  socket = new ResumingSocket(`/ws/runs/${id}`, afterSeq, {
    onEvent: (stored) => queue({ seq: stored.seq, at: Date.parse(stored.at), event: stored.event }),
    onDelta: (event) => {
      pendingText.push(event);
      soon();
    },
    onReset: () => {
      pending = [];
      pendingText = [];
      resetStream();
      run.value = EMPTY_RUN;
    },
    onConnection: (state) => {
      connection.value = state;
      if (state.state !== "closed") return;
      if (state.why === "not_found") {
        clearBench();
        say("This run does not exist, or it belongs to somebody else.", "error");
      } else if (state.why === "signed_out") {
        say("You are signed out. Sign in again; the run goes on and nothing is lost.", "error", {
          title: "Sign in",
          run: () => location.assign(api.signInAddress()),
        });
      }
    },
    onUnreadable: (why) => say(`The server sent ${why}, which this page does not know. Reload the page to get the new one.`),
  });
}

/** Events are folded once a frame: a burst of a thousand is one change of the page. */
function queue(item: Timestamped): void {
  pending.push(item);
  soon();
}

function soon(): void {
  frame ??= requestAnimationFrameOrSoon(() => {
    frame = null;
    const [items, text] = [pending, pendingText];
    pending = [];
    pendingText = [];
    addDeltas(text);
    if (!items.length) return;
    batch(() => {
      for (const { event } of items) settle(event);
      take(fold(run.peek(), items));
    });
  });
}

/** A hidden tab has no frames but must not hold its events back without end. */
function requestAnimationFrameOrSoon(callback: () => void): number {
  return document.visibilityState === "visible" ? requestAnimationFrame(callback) : window.setTimeout(callback, 100);
}

function take(next: RunView): void {
  const before = run.peek();
  run.value = next;
  const judged = (view: RunView) => view.turns.filter((it) => it.evaluation);
  const newest = judged(next).at(-1);
  if (newest?.evaluation && judged(before).length < judged(next).length) {
    const score = newest.evaluation.metrics?.structural_score;
    const words = verdictSign(newest.evaluation.verdict).word;
    announce(`Turn ${newest.number}: ${words}${score === undefined ? "" : `, score ${score.toFixed(0)}`}`);
    if (newest.evaluation.verdict === "compile_error" && following.value) openPanel("log");
  }
  if (next.ended && !before.ended) ended(next);
}

function ended(view: RunView): void {
  const end = view.ended;
  const id = runId.value;
  if (!end) return;
  announce(end.problem?.message ?? end.message);
  stopping.value = false;
  if (id) {
    void refreshDetail(id);
    socket?.close();
    socket = null;
  }
  if (end.problem?.line) {
    openPanel("problems");
    show("source", end.problem.line, end.problem.column ?? 1);
  }
}

export async function stop(): Promise<void> {
  const id = runId.value;
  if (!id || !running.value || stopping.value) return;
  stopping.value = true;
  try {
    await api.cancelRun(id);
  } catch (error) {
    stopping.value = false;
    sayError(error, () => void stop());
  }
}

/** A new run of the same request. */
export async function runAgain(): Promise<void> {
  await startAgain(api.rerun);
}

/** A language model's run that was broken off goes on after its last judged turn. */
export async function resume(): Promise<void> {
  await startAgain(api.resumeRun);
}

async function startAgain(call: (id: string) => Promise<RunSummary>): Promise<void> {
  const id = runId.value;
  if (!id || submitting.value) return;
  submitting.value = true;
  try {
    const created = await call(id);
    const owner = docs.documents.value.find((it) => it.runId === id);
    if (owner) docs.update(owner.id, { runId: created.id });
    follow(created, true);
  } catch (error) {
    sayError(error, () => void startAgain(call));
  } finally {
    submitting.value = false;
  }
}

/** The shown candidate becomes turn 1 of a new run. */
export async function improve(): Promise<void> {
  const source = shown.value?.text;
  if (source) await translate(source);
}

export async function playRecording(item: ExampleItem): Promise<void> {
  clearBench();
  loadingRun.value = true;
  try {
    const recording = await api.getRecording(item.id);
    const began = recording.events.find((it) => it.event.type === "run_started")?.event;
    if (began?.type === "run_started") {
      const suffix = began.task.language === "pytorch" ? ".py" : ".c";
      docs.openRecorded(item.filename || began.task.name + suffix, began.task.source);
    }
    const playing = new Player({ ...recording, label: item.label || recording.label }, take);
    player.value = playing;
    playing.play();
  } catch (error) {
    sayError(error, () => void playRecording(item));
  } finally {
    loadingRun.value = false;
  }
}

export function selectTurn(number: number | null): void {
  const newest = turns.value.at(-1)?.number ?? null;
  chosenTurn.value = number === newest ? null : number;
}

export function stepTurn(by: number): void {
  const all = turns.value;
  const index = all.findIndex((it) => it.number === shown.value?.number);
  const target = all[index + by];
  if (target) selectTurn(target.number);
}

export function show(where: "source" | "candidate", line: number, column = 1): void {
  nonce += 1;
  if (where === "candidate") diffOn.value = false;
  reveal.value = { where, line, column, nonce };
}

export function reconnect(): void {
  socket?.wake();
}

/** A tab in the background says how its run stands. */
export const pageTitle = computed(() => {
  const name = run.value.started?.task.name ?? docs.active.value?.filename;
  const newest = turns.value.at(-1);
  if (!name || (!running.value && !run.value.ended)) return name ? `${name} – Kernelwright` : "Kernelwright";
  const sign = run.value.ended ? endingSign(run.value.ended.reason, run.value.ended.verdict) : RUNNING;
  return `${sign.shape} ${name}${newest ? `, turn ${newest.number}` : ""} – Kernelwright`;
});

/** Those of the workspace that one works in; another one needs another call. */
export function watchRuns(): ResumingSocket {
  return new ResumingSocket(`/ws/runs${api.query({ workspace: slug.peek() })}`, null, {
    onRun: (summary) => {
      noteRun(summary);
      if (summary.id === runId.value && detail.value) detail.value = { ...detail.value, ...summary };
    },
    onConnection: (state) => {
      if (state.state === "live" && runs.value !== null) void loadLists();
    },
  });
}

export async function removeRun(id: string): Promise<void> {
  try {
    await api.deleteRun(id);
    runs.value = (runs.value ?? []).filter((it) => it.id !== id);
    if (runId.value === id) clearBench();
  } catch (error) {
    sayError(error);
  }
}

function setAddress(id: string | null): void {
  goTo({ name: "bench", run: id });
}

/** Back to the bench from another page, with what is on it. */
export function showBench(): void {
  if (page.value.name !== "bench") goTo({ name: "bench", run: runId.value });
}

/** The browser's own back and forward, to a run or to none. */
export function followRun(id: string | null): void {
  if (id === runId.value) return;
  if (id) void openRun(id, false);
  else clearBench(false);
}
