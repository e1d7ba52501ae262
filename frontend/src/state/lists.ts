/** What stands at the left: the gallery, and the runs of the workspace. */
import { batch, signal } from "@preact/signals";
import type { ExampleItem, RunSummary } from "../generated/events";
import * as api from "../protocol/api";
import { sayError } from "./notices";
import { slug } from "./workspaces";

export const examples = signal<readonly ExampleItem[] | null>(null);
export const runs = signal<readonly RunSummary[] | null>(null);
export const moreRuns = signal<string | null>(null);
export const listsFailed = signal<string | null>(null);

export async function loadLists(): Promise<void> {
  listsFailed.value = null;
  const workspace = slug.value;
  try {
    const [items, newest] = await Promise.all([api.listExamples(), api.listRuns(null, workspace)]);
    if (workspace !== slug.value) return;
    batch(() => {
      examples.value = items;
      runs.value = newest.results;
      moreRuns.value = newest.next;
    });
  } catch (error) {
    listsFailed.value = error instanceof Error ? error.message : String(error);
  }
}

export async function loadMoreRuns(): Promise<void> {
  const address = moreRuns.value;
  if (!address) return;
  try {
    const earlier = await api.listRuns(address);
    const known = new Set((runs.value ?? []).map((it) => it.id));
    runs.value = [...(runs.value ?? []), ...earlier.results.filter((it) => !known.has(it.id))];
    moreRuns.value = earlier.next;
  } catch (error) {
    sayError(error);
  }
}

/** A run that is new or has changed, from wherever we heard of it. */
export function noteRun(summary: RunSummary): void {
  const list = runs.value ?? [];
  const index = list.findIndex((it) => it.id === summary.id);
  runs.value = index < 0 ? [summary, ...list] : list.with(index, summary);
}
