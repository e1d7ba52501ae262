/** The lists of review requests: what waits on me, what I asked for, all of the workspace, what is in its library. */
import { batch, computed, signal } from "@preact/signals";
import type { ReviewRequestPage, ReviewRequestSummary, ReviewState, ReviewerState } from "../generated/events";
import * as rest from "../protocol/reviews";
import { sayError } from "./notices";
import type { Sign } from "./verdicts";
import { slug } from "./workspaces";

export type InboxTab = "waiting" | "mine" | "all" | "library";
export const inboxTab = signal<InboxTab>("waiting");
export const lists = signal<Readonly<Record<InboxTab, ReviewRequestPage | null>>>({ waiting: null, mine: null, all: null, library: null });
export const failed = signal<string | null>(null);
export const waitingCount = computed(() => lists.value.waiting?.results.length ?? 0);

let me = "";

export function setMe(username: string): void {
  me = username;
}

export async function loadInbox(): Promise<void> {
  const workspace = slug.value;
  try {
    const [waiting, mine, all, library] = await Promise.all([
      rest.inbox(),
      rest.listRequests(workspace, { author: me }),
      rest.listRequests(workspace),
      rest.listRequests(workspace, { state: "merged" }),
    ]);
    if (workspace !== slug.value) return;
    batch(() => {
      lists.value = { waiting, mine, all, library };
      failed.value = null;
    });
  } catch (error) {
    failed.value = error instanceof Error ? error.message : String(error);
  }
}

export async function loadMore(tab: InboxTab): Promise<void> {
  const page = lists.value[tab];
  if (!page?.next) return;
  try {
    const next = await rest.nextRequests(page.next);
    lists.value = { ...lists.value, [tab]: { ...next, results: [...page.results, ...next.results] } };
  } catch (error) {
    sayError(error);
  }
}

/** While somebody looks, every so often; a review that is open hears of its changes by itself. */
export function watchInbox(seconds = 20): () => void {
  const look = () => {
    if (document.visibilityState === "visible") void loadInbox();
  };
  const timer = setInterval(look, seconds * 1000);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

/** A request that has changed, from wherever we heard of it. */
export function noteRequest(request: ReviewRequestSummary): void {
  const change = (page: ReviewRequestPage | null) =>
    page && { ...page, results: page.results.map((it) => (it.id === request.id ? { ...it, ...request } : it)) };
  const { waiting, mine, all, library } = lists.value;
  lists.value = { waiting: change(waiting), mine: change(mine), all: change(all), library: change(library) };
}

const STATES: Record<ReviewState, Sign> = {
  open: { shape: "○", word: "open", tone: "busy" },
  approved: { shape: "●", word: "approved", tone: "good" },
  changes_requested: { shape: "✗", word: "changes requested", tone: "bad" },
  closed: { shape: "–", word: "closed", tone: "muted" },
  merged: { shape: "◆", word: "in the library", tone: "good" },
};

const REVIEWERS: Record<ReviewerState, Sign> = {
  waiting: { shape: "○", word: "asked", tone: "muted" },
  commented: { shape: "◦", word: "commented", tone: "muted" },
  approved: { shape: "●", word: "approved", tone: "good" },
  changes_requested: { shape: "✗", word: "wants changes", tone: "bad" },
  stale: { shape: "◌", word: "approved older code", tone: "warn" },
};

export const stateSign = (state: ReviewState): Sign => STATES[state];
export const reviewerSign = (state: ReviewerState): Sign => REVIEWERS[state];
