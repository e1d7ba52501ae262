/**
 * Every frame is decoded once, here. Behind this door the rest of the page trusts the generated types.
 *
 * The server's types and ours come from one source, so this checks what would break the page if a proxy, an old
 * server or a damaged recording stood at the other end: the envelope, the discriminator and the fields that the
 * reducer indexes by. What it does not know it reports and leaves out, never throws on.
 */
import type { RunEvent, ServerFrame, StoredEvent } from "../generated/events";

/** `seq`: the number of an event that could not be read, so that it is not asked for again and again. */
export type Decoded<T> = { ok: true; value: T } | { ok: false; why: string; seq?: number };

type Fields = Record<string, "number" | "string" | "object" | "array">;

const EVENT_FIELDS: Record<RunEvent["type"], Fields> = {
  run_started: { task: "object", policy: "string", backend: "string", target: "string", turn_limit: "number" },
  turn_started: { turn: "number", title: "string" },
  text_delta: { turn: "number", text: "string" },
  spent: { turn: "number", prompt_tokens: "number", completion_tokens: "number" },
  answered: { turn: "number", model: "string", text: "string" },
  tool: { turn: "number", tool: "string", arguments: "string", observation: "string" },
  edited: { turn: "number", file: "string", base_version: "number", version: "number", edits: "array" },
  action: { turn: "number", action: "string", source: "string" },
  log: { turn: "number", stream: "string", text: "string" },
  stage: { turn: "number", stage: "string", detail: "string" },
  compiled: { turn: "number", compile: "object" },
  verified: { turn: "number", verification: "object" },
  measured: { turn: "number", metrics: "object" },
  timed: { turn: "number", timing: "object" },
  reflected: { turn: "number", text: "string" },
  turn_ended: { turn: "number", evaluation: "object", seconds: "number" },
  run_ended: { reason: "string", message: "string" },
};

/** What recordings of before do not say yet. */
const SINCE: Partial<Record<RunEvent["type"], object>> = {
  run_started: { strategy: "single" },
  turn_started: { branch: 1, also_from: null },
  turn_ended: { same_as: null },
};

export function decodeEvent(raw: unknown): Decoded<RunEvent> {
  if (!isRecord(raw) || typeof raw.type !== "string") return no("an event without a type");
  if (!Object.hasOwn(EVENT_FIELDS, raw.type)) return no(`an event of unknown type “${raw.type}”`);
  const fields = EVENT_FIELDS[raw.type as RunEvent["type"]];
  for (const [name, kind] of Object.entries(fields)) {
    if (!isKind(raw[name], kind)) return no(`${raw.type} without a proper ${name}`);
  }
  return { ok: true, value: { ...SINCE[raw.type as RunEvent["type"]], ...raw } as unknown as RunEvent };
}

/** One stored event, from REST or a websocket frame. */
export function decodeStored(raw: unknown): Decoded<StoredEvent> {
  if (!isRecord(raw) || !isSeq(raw.seq)) return no("an event without a number");
  const event = decodeEvent(raw.event);
  if (!event.ok) return { ...event, seq: raw.seq };
  return { ok: true, value: { seq: raw.seq, at: typeof raw.at === "string" ? raw.at : "", event: event.value } };
}

export function decodeFrame(text: string): Decoded<ServerFrame> {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return no("a frame that is not JSON");
  }
  if (!isRecord(raw)) return no("a frame that is not an object");
  switch (raw.type) {
    case "event": {
      const stored = decodeStored(raw);
      return stored.ok ? { ok: true, value: { type: "event", ...stored.value } } : stored;
    }
    case "delta": {
      const event = decodeEvent(raw.event);
      if (!event.ok) return event;
      return event.value.type === "text_delta"
        ? { ok: true, value: { type: "delta", event: event.value } }
        : no(`a delta that is a ${event.value.type}`);
    }
    case "live":
      return isSeq(raw.seq) ? { ok: true, value: { type: "live", seq: raw.seq } } : no("live without a number");
    case "run":
      return isRecord(raw.run) && typeof raw.run.id === "string"
        ? { ok: true, value: raw as unknown as ServerFrame }
        : no("a run frame without a run");
    case "changed":
      return { ok: true, value: { type: "changed", version: isSeq(raw.version) ? raw.version : 0 } };
    case "reset":
    case "ping":
    case "pong":
      return { ok: true, value: { type: raw.type } };
    default:
      return no(`a frame of unknown type “${String(raw.type)}”`);
  }
}

function no(why: string): { ok: false; why: string } {
  return { ok: false, why };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSeq(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function isKind(value: unknown, kind: Fields[string]): boolean {
  if (kind === "array") return Array.isArray(value);
  if (kind === "object") return isRecord(value);
  return typeof value === kind;
}
