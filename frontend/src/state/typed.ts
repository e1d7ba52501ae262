/** What somebody has typed in a review and not sent: it survives a reload, and code that moves under it. */
import { effect, signal } from "@preact/signals";
import type { Evidence, ReviewVerdict, Side } from "../generated/events";
import { isRecord } from "../protocol/decode";
import { load, save } from "./storage";

/** A comment being written at some lines of a revision. */
export interface Box {
  key: string;
  revision: string;
  side: Side;
  line: number;
  endLine: number;
  quoted: string;
  body: string;
  /** The lines as they should read; null: no change is suggested. */
  suggestion: string | null;
  evidence: Evidence | null;
}

/** An answer in a thread, or a comment of one's own that is being changed: by their ids. */
export interface Answer {
  body: string;
  suggestion: string | null;
}

export interface Typed {
  boxes: readonly Box[];
  answers: Readonly<Record<string, Answer>>;
  review: { verdict: ReviewVerdict; body: string };
  /** The newest revision as somebody is editing it. */
  edit: { base: string; text: string } | null;
}

export const NOTHING: Typed = { boxes: [], answers: {}, review: { verdict: "comment", body: "" }, edit: null };
export const typed = signal<Typed>(NOTHING);
let request: string | null = null;

const KEY = (id: string) => `review.${id}`;

export function openTyped(id: string): void {
  request = null; // so that nothing is written under another request's name
  typed.value = decodeTyped(load(KEY(id)));
  request = id;
}

export function keepTyped(): void {
  effect(() => {
    const value = typed.value;
    if (request !== null) save(KEY(request), value);
  });
}

export function decodeTyped(raw: unknown): Typed {
  if (!isRecord(raw)) return NOTHING;
  const boxes = Array.isArray(raw.boxes) ? (raw.boxes as unknown[]).filter(isBox) : [];
  const answers = Object.entries(isRecord(raw.answers) ? raw.answers : {}).filter((it): it is [string, Answer] => isRecord(it[1]) && typeof it[1].body === "string");
  const review = isRecord(raw.review) && typeof raw.review.body === "string" ? (raw.review as Typed["review"]) : NOTHING.review;
  const { edit } = raw;
  const known = isRecord(edit) && typeof edit.base === "string" && typeof edit.text === "string" ? { base: edit.base, text: edit.text } : null;
  return { boxes, answers: Object.fromEntries(answers), review, edit: known };
}

function isBox(raw: unknown): raw is Box {
  return isRecord(raw) && typeof raw.key === "string" && typeof raw.revision === "string" && typeof raw.line === "number" && typeof raw.body === "string";
}

export function boxKey(revision: string, side: Side, line: number, endLine: number): string {
  return `${revision}:${side}:${line}:${endLine}`;
}

/** The box at these lines, new or as it was left. */
export function openBox(place: Omit<Box, "key" | "body" | "suggestion" | "evidence">): Box {
  const key = boxKey(place.revision, place.side, place.line, place.endLine);
  const known = typed.value.boxes.find((it) => it.key === key);
  if (known) return known;
  const box: Box = { ...place, key, body: "", suggestion: null, evidence: null };
  typed.value = { ...typed.value, boxes: [...typed.value.boxes, box] };
  return box;
}

export function changeBox(key: string, change: Partial<Box>): void {
  typed.value = { ...typed.value, boxes: typed.value.boxes.map((it) => (it.key === key ? { ...it, ...change } : it)) };
}

export function closeBox(key: string): void {
  typed.value = { ...typed.value, boxes: typed.value.boxes.filter((it) => it.key !== key) };
}

/** To the lines where the code is now; what was typed goes along. A suggestion's first guess does not. */
export function moveBox(key: string, to: Pick<Box, "revision" | "side" | "line" | "endLine" | "quoted">): Box | null {
  const box = typed.value.boxes.find((it) => it.key === key);
  if (!box) return null;
  const moved = { ...box, ...to, key: boxKey(to.revision, to.side, to.line, to.endLine) };
  if (moved.suggestion === box.quoted) moved.suggestion = to.quoted;
  typed.value = { ...typed.value, boxes: [...typed.value.boxes.filter((it) => it.key !== key && it.key !== moved.key), moved] };
  return moved;
}

export function setAnswer(id: string, answer: Answer | null): void {
  const others = Object.entries(typed.value.answers).filter(([known]) => known !== id);
  typed.value = { ...typed.value, answers: Object.fromEntries(answer ? [...others, [id, answer]] : others) };
}

export function setEdit(edit: Typed["edit"]): void {
  typed.value = { ...typed.value, edit };
}

export function setReview(change: Partial<Typed["review"]>): void {
  typed.value = { ...typed.value, review: { ...typed.value.review, ...change } };
}
