/** The review that is open: what is compared, what was said, and what can be done about it. */
import { batch, computed, signal } from "@preact/signals";
import type { CodeMoved, ReviewRequestDetail, ReviewSubmission, ReviewThread, Revision, RevisionDiff, RevisionSummary, Side } from "../generated/events";
import { ApiError } from "../protocol/api";
import * as rest from "../protocol/reviews";
import { ResumingSocket, type Connection } from "../protocol/socket";
import { loadInbox, noteRequest } from "./inbox";
import { announce, say, sayError } from "./notices";
import { addressOf, goTo, NOWHERE, page, type ReviewPlace } from "./page";
import { lineWords, linesOf, placeIn, revisionWords, stepUnresolved, type Compared } from "./threads";
import { load, save } from "./storage";
import { moveBox, openBox, openTyped, typed } from "./typed";

export const request = signal<ReviewRequestDetail | null>(null);
export const threads = signal<readonly ReviewThread[]>([]);
export const submissions = signal<readonly ReviewSubmission[]>([]);
/** Whole ones, as they were asked for; a revision never changes but for the judge's word. */
export const sources = signal<ReadonlyMap<string, Revision>>(new Map());
export const loading = signal(false);
export const failed = signal<{ message: string; gone: boolean } | null>(null);
export const connection = signal<Connection | null>(null);

/** Compared: `from` null shows the whole of `to`. */
export const fromId = signal<string | null>(null);
export const toId = signal<string | null>(null);
export const metrics = signal<RevisionDiff | null>(null);
/** The thread that one stands on. */
export const currentThread = signal<string | null>(null);
/** Lines that the diff is asked to show; `nonce` makes asking twice a change. */
export const reveal = signal<{ side: Side; line: number; focus: boolean; nonce: number } | null>(null);
/** The code moved while something was written: where it is now, and the box that waits (null: a whole review). */
export const moved = signal<(CodeMoved & { box: string | null }) | null>(null);
/** Suggestions that are chosen to be taken in together. */
export const chosen = signal<ReadonlySet<string>>(new Set());
export const dialog = signal<"submit" | "edit" | null>(null);
/** What is being sent, so that a second press sends nothing. */
export const sending = signal<string | null>(null);
/** What the diff on the page can be asked for; the pane puts it here while it is there. */
export const diffView = signal<{ nextHunk: (by: 1 | -1) => void; selected: () => { side: Side; line: number; endLine: number } } | null>(null);

export interface ViewOptions {
  inline: boolean;
  ignoreSpace: boolean;
  /** Unchanged lines shown around each change; null: all. */
  context: number | null;
}
const kept = load("review.view") as Partial<ViewOptions> | null;
export const view = signal<ViewOptions>({ inline: false, ignoreSpace: false, context: 3, ...kept });

export function setView(change: Partial<ViewOptions>): void {
  view.value = { ...view.value, ...change };
  save("review.view", view.value);
  if (change.ignoreSpace !== undefined) void loadMetrics();
}

export const head = computed(() => request.value?.head ?? null);
export const to = computed(() => (toId.value ? (sources.value.get(toId.value) ?? null) : null));
export const from = computed(() => (fromId.value ? (sources.value.get(fromId.value) ?? null) : null));
export const compared = computed<Compared | null>(() =>
  toId.value && head.value ? { from: fromId.value, to: toId.value, head: head.value.id } : null,
);
/** All that can be compared, oldest first: the base, the run's turns, the heads. */
export const choices = computed<RevisionSummary[]>(() => {
  const it = request.value;
  if (!it) return [];
  const all = [...(it.base ? [it.base] : []), ...it.turns, ...it.revisions, it.head];
  const byId = new Map(all.map((revision) => [revision.id, revision]));
  return [...byId.values()].sort((a, b) => Number(a.id !== it.base?.id) - Number(b.id !== it.base?.id) || a.number - b.number);
});
export const unresolved = computed(() => threads.value.filter((it) => !it.resolved));

let socket: ResumingSocket | null = null;
let nonce = 0;
let me = "";

export function setMe(username: string): void {
  me = username;
}

export const pageTitle = computed(() => {
  const it = request.value;
  return it ? `#${it.number} ${it.title} – Kernelwright` : "Review – Kernelwright";
});

export const isMine = (username: string | undefined): boolean => username === me;

export function numberOf(id: string | null): number | null {
  return choices.value.find((it) => it.id === id)?.number ?? null;
}

/* Opening and listening */

export async function openReview(id: string, place: ReviewPlace = NOWHERE, push = true): Promise<void> {
  if (push) goTo({ name: "review", id, place });
  if (request.value?.id === id) {
    await stand(place);
    return;
  }
  closeReview();
  openTyped(id);
  loading.value = true;
  try {
    const [found, said, sent] = await Promise.all([rest.getRequest(id), rest.listThreads(id), rest.listSubmissions(id)]);
    if (!isOpen(id)) return;
    batch(() => {
      request.value = found;
      threads.value = said;
      submissions.value = sent;
      remember(found.head);
      if (found.base) remember(found.base);
    });
    listen(id);
    await stand(place);
  } catch (error) {
    if (!isOpen(id)) return;
    const gone = error instanceof ApiError && error.status === 404;
    const message = gone ? "There is no such review, or it belongs to a workspace that you are not a member of." : text(error);
    failed.value = { message, gone };
  } finally {
    if (isOpen(id)) loading.value = false;
  }
}

const isOpen = (id: string) => page.value.name === "review" && page.value.id === id;
const text = (error: unknown) => (error instanceof Error ? error.message : String(error));

export function closeReview(): void {
  socket?.close();
  socket = null;
  batch(() => {
    request.value = null;
    threads.value = [];
    submissions.value = [];
    sources.value = new Map();
    fromId.value = null;
    toId.value = null;
    metrics.value = null;
    currentThread.value = null;
    moved.value = null;
    chosen.value = new Set();
    dialog.value = null;
    failed.value = null;
    connection.value = null;
  });
}

function listen(id: string): void {
  socket?.close();
  let first = true;
  socket = new ResumingSocket(`/ws/reviews/${encodeURIComponent(id)}`, null, {
    onChanged: (version) => {
      if (version !== request.value?.version) void refresh();
    },
    onConnection: (state) => {
      connection.value = state;
      // What was missed while there was no connection, nobody tells.
      if (state.state === "live" && !first) void refresh();
      if (state.state === "live") first = false;
      if (state.state === "closed" && state.why === "signed_out") say("You are signed out. What you typed is kept.", "error");
    },
  });
}

export function reconnect(): void {
  socket?.wake();
}

let refreshing: Promise<void> | null = null;
let again = false;

/** Asks anew; hints that come meanwhile become one more asking. */
export async function refresh(): Promise<void> {
  if (refreshing) {
    again = true;
    await refreshing;
    return;
  }
  refreshing = fetchAll();
  try {
    await refreshing;
  } finally {
    refreshing = null;
  }
  if (again) {
    again = false;
    await refresh();
  }
}

async function fetchAll(): Promise<void> {
  const before = request.value;
  if (!before) return;
  try {
    const [found, said, sent] = await Promise.all([rest.getRequest(before.id), rest.listThreads(before.id), rest.listSubmissions(before.id)]);
    if (request.value?.id !== before.id) return;
    batch(() => {
      request.value = found;
      threads.value = said;
      submissions.value = sent;
      remember(found.head);
      noteRequest(found);
    });
    if (found.head.id !== before.head.id) {
      announce(`Revision ${found.head.number} is there: ${revisionWords(found.head)}`);
      void loadInbox();
    } else if (found.head.state !== before.head.state || toId.value === found.head.id) void loadMetrics();
    if (found.state !== before.state) void loadInbox();
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) failed.value = { message: "This review is not there any more.", gone: true };
  }
}

function remember(revision: Revision): void {
  sources.value = new Map(sources.value).set(revision.id, revision);
}

async function whole(id: string): Promise<Revision | null> {
  const known = sources.value.get(id);
  if (known && (known.state === "judged" || known.id === head.value?.id)) return known;
  try {
    const found = await rest.getRevision(id);
    remember(found);
    return found;
  } catch (error) {
    sayError(error);
    return null;
  }
}

/* What is shown */

async function stand(place: ReviewPlace): Promise<void> {
  const it = request.value;
  if (!it) return;
  const byNumber = (number: number | null) => choices.value.find((known) => known.number === number)?.id ?? null;
  const newest = byNumber(place.revision) ?? it.head.id;
  await compare(place.against === null ? usualBase(it, newest) : byNumber(place.against), newest, false);
  const thread = threads.value.find((known) => known.id === place.thread);
  if (thread) showThread(thread);
  else if (place.line !== null) showLine("new", place.line, true);
}

/** What one has reviewed already, else what the library holds, else nothing: the whole is new. */
function usualBase(it: ReviewRequestDetail, shown: string): string | null {
  const seen = it.reviewers.find((known) => isMine(known.username))?.revision ?? null;
  if (seen !== null && seen !== shown && choices.value.some((known) => known.id === seen)) return seen;
  return it.base && it.base.id !== shown ? it.base.id : null;
}

export async function compare(older: string | null, newer: string, address = true): Promise<void> {
  const [a, b] = await Promise.all([older && older !== newer ? whole(older) : null, whole(newer)]);
  if (!b || !request.value) return;
  batch(() => {
    fromId.value = a?.id ?? null;
    toId.value = b.id;
  });
  if (address) tellAddress({});
  await loadMetrics();
}

/** The newest revision against the one that was shown. */
export async function showHead(): Promise<void> {
  const newest = head.value;
  if (!newest) return;
  await compare(toId.value === newest.id ? fromId.value : toId.value, newest.id);
}

async function loadMetrics(): Promise<void> {
  const it = request.value;
  const [a, b] = [fromId.value, toId.value];
  if (!it || !b) return;
  try {
    const found = await rest.diff(it.id, a, b, view.value.ignoreSpace ? "ignore" : "show");
    if (fromId.value === a && toId.value === b) metrics.value = found;
  } catch (error) {
    metrics.value = null;
    sayError(error);
  }
}

/** The address of what is seen, for somebody else. */
export function placeNow(more: Partial<ReviewPlace> = {}): ReviewPlace {
  const newest = toId.value === head.value?.id;
  return {
    revision: newest && more.line === undefined ? null : numberOf(toId.value),
    against: fromId.value ? numberOf(fromId.value) : null,
    line: null,
    thread: null,
    ...more,
  };
}

export function linkTo(more: Partial<ReviewPlace>): string {
  return addressOf({ name: "review", id: request.value?.id ?? "", place: placeNow({ ...more, revision: numberOf(toId.value) }) });
}

function tellAddress(more: Partial<ReviewPlace>): void {
  const it = request.value;
  if (it && isOpen(it.id)) goTo({ name: "review", id: it.id, place: placeNow(more) }, true);
}

export function showLine(side: Side, line: number, focus = false): void {
  nonce += 1;
  reveal.value = { side, line, focus, nonce };
}

export function showThread(thread: ReviewThread): void {
  currentThread.value = thread.id;
  const there = compared.value ? placeIn(thread, compared.value) : null;
  if (there) showLine(there.side, there.endLine);
  tellAddress({ thread: thread.id });
}

/** Where the thread was begun: the code as it was then. */
export async function showOrigin(thread: ReviewThread): Promise<void> {
  const newest = head.value;
  if (!newest) return;
  const origin = thread.anchor.revision;
  await (origin === newest.id ? compare(null, newest.id) : compare(origin, newest.id));
  showThread(thread);
}

export function nextThread(by: 1 | -1): void {
  const next = stepUnresolved(threads.value, currentThread.value, by);
  if (!next) {
    say("Every thread is resolved.");
    return;
  }
  showThread(next);
  const first = next.comments[0];
  announce(`Thread on ${lineWords(next.anchor.line, next.anchor.end_line)}, ${first?.author?.username ?? "the agent"}: ${first?.body ?? ""}`);
}

/** A box at lines of what is shown. */
export function commentOn(side: Side, line: number, endLine: number): void {
  const revision = side === "new" ? to.value : from.value;
  if (!revision || !request.value?.can.comment) {
    if (request.value) say(request.value.can.why.comment ?? "You cannot comment here.");
    return;
  }
  openBox({ revision: revision.id, side, line, endLine, quoted: linesOf(revision.source, line, endLine) });
}

/** Takes what was typed to where the code is now. */
export async function followCode(): Promise<void> {
  const it = moved.value;
  if (!it) return;
  await refresh();
  await showHead();
  const newest = head.value;
  const box = it.box === null ? null : (typed.value.boxes.find((known) => known.key === it.box) ?? null);
  if (box && newest) {
    const last = newest.source.split("\n").length;
    const line = it.place?.line ?? Math.min(box.line, last);
    const endLine = it.place?.end_line ?? Math.min(box.endLine, last);
    moveBox(box.key, { revision: newest.id, side: "new", line, endLine, quoted: linesOf(newest.source, line, endLine) });
    showLine("new", endLine);
  }
  moved.value = null;
}
