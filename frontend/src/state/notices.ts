/** Things that went wrong outside a run: said beside the work, never in its way. */
import { signal } from "@preact/signals";
import { ApiError, signInAddress } from "../protocol/api";

export interface Notice {
  id: number;
  tone: "error" | "info";
  text: string;
  action?: { title: string; run: () => void };
}

export const notices = signal<readonly Notice[]>([]);
let counter = 0;

export function say(text: string, tone: Notice["tone"] = "info", action?: Notice["action"]): void {
  const known = notices.value.filter((it) => it.text !== text);
  counter += 1;
  notices.value = [...known.slice(-3), { id: counter, tone, text, ...(action ? { action } : {}) }];
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((it) => it.id !== id);
}

/** What a failed call means, with the way out where there is one. */
export function sayError(error: unknown, retry?: () => void): void {
  if (!(error instanceof ApiError)) {
    say(`The page has a fault: ${error instanceof Error ? error.message : String(error)}. Reload it; drafts are kept.`, "error");
    return;
  }
  const signedOut = error.status === 401;
  const action = signedOut
    ? { title: "Sign in", run: () => location.assign(signInAddress()) }
    : retry
      ? { title: "Try again", run: retry }
      : undefined;
  const id = error.problem?.request_id;
  const reference = error.status >= 500 && id ? ` (request ${id})` : "";
  say(error.message + reference, "error", action);
}

/** The one aria-live line: milestones, not log lines. */
export const announcement = signal("");

export function announce(text: string): void {
  announcement.value = text;
}
