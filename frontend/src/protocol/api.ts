/** The REST API under /api/v1, one function a call. Every failure is an `ApiError` that says what to do. */
import type {
  EventPage,
  ExampleItem,
  Finding,
  ProblemDocument,
  ProfileVersion,
  RecordedEvent,
  Recording,
  RunCreate,
  RunDetail,
  RunPage,
  RunSummary,
  Session,
  StoredEvent,
} from "../generated/events";
import { decodeEvent, decodeStored, isRecord } from "./decode";

/** `status` 0: the server did not answer. `problem` is there when the server sent problem+json. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problem: ProblemDocument | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }

  get offline(): boolean {
    return this.status === 0;
  }
}

const BASE = "/api/v1/";

export function csrfToken(): string {
  return /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? "";
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One request, answered by what the server sent, or by an `ApiError`. `more`: headers such as If-Match. */
export async function call(method: Method, path: string, body?: unknown, more: Record<string, string> = {}): Promise<unknown> {
  const headers: Record<string, string> = { Accept: "application/json, application/problem+json", ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response: Response;
  try {
    response = await fetch(path.startsWith("/") ? path : BASE + path, init);
  } catch {
    throw new ApiError(0, "The server does not answer. What you typed is kept; try again when it is back.");
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let parsed: unknown = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    parsed = null;
  }
  if (response.ok) return parsed;
  throw problemOf(response, parsed);
}

function problemOf(response: Response, parsed: unknown): ApiError {
  if (isRecord(parsed) && typeof parsed.detail === "string") {
    const problem = parsed as unknown as ProblemDocument;
    const fields = Array.isArray(problem.errors) ? problem.errors : [];
    const where = fields.map((field) => `${field.field}: ${field.message}`).join("; ");
    const detail = [problem.detail || problem.title, where].filter(Boolean).join(" ");
    return new ApiError(response.status, detail, problem);
  }
  const words =
    response.status === 401 || response.status === 403
      ? "You are signed out. Sign in again; what you typed is kept."
      : response.status === 413
        ? "That is too large for the server. The limit is 1 MB of text."
        : `The server answered ${response.status} ${response.statusText}`.trim() + ". Try again in a moment.";
  return new ApiError(response.status, words);
}

export async function createRun(request: RunCreate): Promise<RunSummary> {
  return (await call("POST", "runs", request)) as RunSummary;
}

/** `address` is the `next` of an earlier page; else the newest runs of a workspace, or of one's own. */
export async function listRuns(address: string | null, workspace: string | null = null): Promise<RunPage> {
  return (await call("GET", address ? sameOrigin(address) : `runs${query({ workspace })}`)) as RunPage;
}

export async function getRun(id: string): Promise<RunDetail> {
  return (await call("GET", `runs/${encodeURIComponent(id)}`)) as RunDetail;
}

export async function getEvents(id: string, afterSeq: number): Promise<EventPage> {
  const raw = await call("GET", `runs/${encodeURIComponent(id)}/events?after_seq=${afterSeq}`);
  const page = isRecord(raw) ? raw : {};
  const rows: unknown[] = Array.isArray(page.results) ? page.results : [];
  const results: StoredEvent[] = [];
  for (const row of rows) {
    const stored = decodeStored(row);
    if (stored.ok) results.push(stored.value);
  }
  const lastSeq = typeof page.last_seq === "number" ? page.last_seq : (results.at(-1)?.seq ?? afterSeq);
  return { results, last_seq: lastSeq, ended: page.ended === true };
}

export async function cancelRun(id: string): Promise<void> {
  await call("POST", `runs/${encodeURIComponent(id)}/cancel`, {});
}

export async function rerun(id: string): Promise<RunSummary> {
  return (await call("POST", `runs/${encodeURIComponent(id)}/rerun`, {})) as RunSummary;
}

export async function resumeRun(id: string): Promise<RunSummary> {
  return (await call("POST", `runs/${encodeURIComponent(id)}/resume`, {})) as RunSummary;
}

export async function deleteRun(id: string): Promise<void> {
  await call("DELETE", `runs/${encodeURIComponent(id)}`);
}

export async function listExamples(): Promise<ExampleItem[]> {
  const raw = await call("GET", "examples");
  const rows: unknown = isRecord(raw) && Array.isArray(raw.results) ? raw.results : raw;
  return Array.isArray(rows) ? (rows as ExampleItem[]) : [];
}

export async function getRecording(id: string): Promise<Recording> {
  const raw = await call("GET", `recordings/${encodeURIComponent(id)}`);
  if (!isRecord(raw) || !Array.isArray(raw.events)) throw new ApiError(200, "This recording cannot be read.");
  const events: RecordedEvent[] = [];
  (raw.events as unknown[]).forEach((row, index) => {
    if (!isRecord(row) || typeof row.at !== "number") return;
    const event = decodeEvent(row.event);
    if (event.ok) events.push({ seq: typeof row.seq === "number" ? row.seq : index + 1, at: row.at, event: event.value });
  });
  return { id, title: textOr(raw.title, id), label: textOr(raw.label, "Recorded"), events };
}

export async function getSession(): Promise<Session> {
  return (await call("GET", "session")) as Session;
}

/** The newest version of each agent profile that the user can choose. */
export async function listProfiles(): Promise<ProfileVersion[]> {
  const raw = await call("GET", "profiles");
  return isRecord(raw) && Array.isArray(raw.results) ? (raw.results as ProfileVersion[]) : [];
}

/** What this machine can do, as `kernelwright doctor --json` says it. */
export async function getDoctor(): Promise<Finding[]> {
  const raw = await call("GET", "doctor");
  return Array.isArray(raw) ? (raw as Finding[]) : [];
}

/** Where signing in leads back to this page. */
export function signInAddress(): string {
  return `/sign-in?next=${encodeURIComponent(location.pathname)}`;
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

/** "?a=1&b=2" of what is known. */
export function query(values: Record<string, string | null | undefined>): string {
  const known = Object.entries(values).filter((it): it is [string, string] => typeof it[1] === "string" && it[1] !== "");
  return known.length ? `?${new URLSearchParams(known).toString()}` : "";
}

export function sameOrigin(address: string): string {
  const url = new URL(address, location.origin);
  return url.pathname + url.search;
}
