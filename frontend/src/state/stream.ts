/**
 * What a language model is writing right now: sent, never stored, and gone once the whole answer is there.
 *
 * Not part of the run's view: a piece must cost what its own text costs, however much of the page looks at the run.
 * Pieces may be missing (nobody listened) or come late (the answer was stored first): both are seen here.
 */
import { signal } from "@preact/signals";
import type { RunEvent, TextDelta } from "../generated/events";

export interface Chunk {
  text: string;
  thought: boolean;
}

export interface Stream {
  turn: number;
  request: number;
  chunks: readonly Chunk[];
  /** Characters, missed ones included: where the next piece should start. */
  length: number;
}

/** Stands for pieces that were missed; the stored answer has them. */
export const GAP = "\n⋯\n";

/** A new object at each change; `chunks` is one growing list for as long as the request is the same. */
export const stream = signal<Stream | null>(null);

/** The last request that is over: nothing more of it is shown. */
let over = { turn: 0, request: 0 };

export function resetStream(): void {
  stream.value = null;
  over = { turn: 0, request: 0 };
}

/** Pieces, in the order in which they came. */
export function addDeltas(deltas: readonly TextDelta[]): void {
  let current = stream.peek();
  const before = current;
  for (const { turn, request, start, text, thought } of deltas) {
    if (!isAfter({ turn, request }, over)) continue;
    if (current === null || isAfter({ turn, request }, current)) current = { turn, request, chunks: [], length: 0 };
    else if (isAfter(current, { turn, request })) continue;
    const chunks = current.chunks as Chunk[];
    if (start > current.length) chunks.push({ text: GAP, thought: false });
    if (start < current.length) continue; // told before
    chunks.push({ text, thought });
    current = { ...current, length: start + text.length };
  }
  if (current !== before) stream.value = current;
}

/** What a stored event means for the text: an answer is whole, an attempt is void, a turn or the run is over. */
export function settle(event: RunEvent): void {
  switch (event.type) {
    case "answered":
      close(event.turn, event.request);
      break;
    case "stage": // the pieces of the attempt that failed are void
      if (event.stage === "model_wait") close(event.turn, stream.peek()?.turn === event.turn ? (stream.peek()?.request ?? 0) : 0);
      break;
    case "turn_ended":
      close(event.turn, Number.MAX_SAFE_INTEGER);
      break;
    case "run_ended":
      close(Number.MAX_SAFE_INTEGER, 0);
      break;
    default:
  }
}

function close(turn: number, request: number): void {
  if (isAfter({ turn, request }, over)) over = { turn, request };
  const current = stream.peek();
  if (current && !isAfter(current, over)) stream.value = null;
}

function isAfter(a: { turn: number; request: number }, b: { turn: number; request: number }): boolean {
  return a.turn > b.turn || (a.turn === b.turn && a.request > b.request);
}
