/** Asking for a review of a turn: whom, under which title, and what it takes. */
import { signal } from "@preact/signals";
import type { ApprovalRule, Member, RunDetail } from "../generated/events";
import * as rest from "../protocol/reviews";
import { listMembers } from "../protocol/workspaces";
import { loadInbox } from "./inbox";
import { sayError } from "./notices";
import { slug } from "./workspaces";

export interface Asked {
  run: string;
  turn: number;
  title: string;
  score: number | null;
}

/** The turn that a review is asked for; null: the dialog is closed. */
export const asking = signal<Asked | null>(null);
/** Who could review; null: not known yet. */
export const people = signal<readonly Member[] | null>(null);
export const sendingAsk = signal(false);
/** Opens a run on the bench; the page sets it, since the bench knows of reviews and not the other way round. */
export const askFor = signal<((run: string) => void) | null>(null);

export function startAsking(detail: RunDetail | null, run: string, turn: number, score: number | null): void {
  const title = detail?.title ?? "Kernel";
  asking.value = { run, turn, title, score };
  void loadPeople();
}

export async function loadPeople(workspace = slug.value): Promise<void> {
  if (!workspace) return;
  try {
    people.value = await listMembers(workspace);
  } catch (error) {
    people.value = [];
    sayError(error);
  }
}

export const canReview = (member: Member): boolean => !["viewer", "author"].includes(member.role);

/** The id of the new request, or null when it was not taken. */
export async function ask(title: string, description: string, reviewers: string[], rule: ApprovalRule): Promise<string | null> {
  const wanted = asking.value;
  if (!wanted || sendingAsk.value) return null;
  sendingAsk.value = true;
  try {
    const made = await rest.askForReview({ run: wanted.run, turn: wanted.turn, title, description, reviewers, rule });
    asking.value = null;
    void loadInbox();
    return made.id;
  } catch (error) {
    sayError(error);
    return null;
  } finally {
    sendingAsk.value = false;
  }
}
