/** Where threads stand in what is shown, in which order one walks through them, and what a suggestion makes. */
import type { MetricDelta, ReviewComment, ReviewThread, RevisionSummary, Side, Suggestion } from "../generated/events";
import type { Sign } from "./verdicts";

export interface ShownPlace {
  side: Side;
  line: number;
  endLine: number;
}

/** The two revisions that are compared, by id; `from` null: nothing, the whole of `to` is shown. */
export interface Compared {
  from: string | null;
  to: string;
  head: string;
}

/** Lines of the shown texts on which a thread stands; null when it is on neither. */
export function placeIn(thread: ReviewThread, shown: Compared): ShownPlace | null {
  const { anchor, place } = thread;
  const there = (side: Side, lines: { line: number; end_line: number }): ShownPlace => ({ side, line: lines.line, endLine: lines.end_line });
  if (place?.side === "new") {
    if (shown.to === shown.head) return there("new", place);
    if (shown.from === shown.head) return there("old", place);
  }
  if (anchor.revision === shown.to) return there("new", anchor);
  if (anchor.revision === shown.from) return there("old", anchor);
  return null;
}

/** Those that wait for something first, from the top of the code down; the ones without a place at the end. */
export function inOrder(threads: readonly ReviewThread[]): ReviewThread[] {
  const line = (it: ReviewThread) => it.place?.line ?? Number.MAX_SAFE_INTEGER;
  return [...threads].sort(
    (a, b) => Number(a.resolved) - Number(b.resolved) || line(a) - line(b) || a.created_at.localeCompare(b.created_at),
  );
}

/** The unresolved thread after (or before) the one one stands on, around the end. */
export function stepUnresolved(threads: readonly ReviewThread[], current: string | null, by: 1 | -1): ReviewThread | null {
  const open = inOrder(threads).filter((it) => !it.resolved);
  if (!open.length) return null;
  const at = open.findIndex((it) => it.id === current);
  const next = at < 0 ? (by > 0 ? 0 : open.length - 1) : (at + by + open.length) % open.length;
  return open[next] ?? null;
}

export function linesOf(source: string, line: number, endLine: number): string {
  return source.split("\n").slice(line - 1, endLine).join("\n");
}

/** "line 4", "lines 4–6". */
export function lineWords(line: number, endLine: number): string {
  return line === endLine ? `line ${line}` : `lines ${line}–${endLine}`;
}

/** Can still be taken in: it stands, nobody has applied it, and it is written for the code that is there now. */
export function isOpenSuggestion(comment: ReviewComment, thread: ReviewThread): boolean {
  return comment.suggestion !== null && !comment.draft && !comment.deleted && comment.applied_in === null && !thread.gone;
}

/** What a suggestion would replace, as it is known to the page. Null: that revision is not loaded. */
export function replaced(suggestion: Suggestion, source: string | undefined): string | null {
  return source === undefined ? null : linesOf(source, suggestion.line, suggestion.end_line);
}

export function hasDraft(threads: readonly ReviewThread[]): number {
  return threads.reduce((sum, it) => sum + it.comments.filter((comment) => comment.draft).length, 0);
}

/* Revisions in words. */

export function revisionWords(revision: Pick<RevisionSummary, "origin" | "turn" | "author" | "credited">): string {
  const who = revision.author?.username ?? "the agent";
  switch (revision.origin) {
    case "turn":
      return `turn ${revision.turn ?? "?"} of the agent`;
    case "suggestion": {
      const others = revision.credited.filter((it) => it !== revision.author?.username);
      return `suggestion${others.length ? ` of ${others.join(", ")}` : ""}, taken in by ${who}`;
    }
    case "edit":
      return `edit by ${who}`;
    case "upload":
      return `upload by ${who}`;
  }
}

/* Metrics beside the hunks. */

export interface DeltaRow {
  name: string;
  title: string;
  old: string;
  new: string;
  change: string;
  tone: Sign["tone"];
  shape: string;
  same: boolean;
}

export function metricTitle(name: string): string {
  return name.startsWith("dram ") ? `DRAM${name.slice(4)}` : name.charAt(0).toUpperCase() + name.slice(1);
}

function amount(value: number | string | null): string {
  if (value === null) return "–";
  if (typeof value === "string") return value.replaceAll("_", " ");
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}

export function deltaRow(it: MetricDelta): DeltaRow {
  const same = it.old === it.new;
  const numbers = typeof it.old === "number" && typeof it.new === "number";
  const by = numbers ? (it.new as number) - (it.old as number) : 0;
  const change = same ? "" : numbers ? `${by > 0 ? "+" : "−"}${amount(Math.abs(by))}` : "changed";
  return {
    name: it.name,
    title: metricTitle(it.name),
    old: amount(it.old),
    new: amount(it.new),
    change,
    tone: it.better === true ? "good" : it.better === false ? "bad" : "muted",
    shape: same ? "" : numbers ? (by > 0 ? "▲" : "▼") : "●",
    same,
  };
}
