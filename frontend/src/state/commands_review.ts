/** The actions of reviews and workspaces, for the palette, the list of keys and the buttons. */
import { startAsking } from "./ask";
import type { Command } from "./commands";
import { toggleSide } from "./layout";
import { goTo, page } from "./page";
import * as review from "./review";
import { turnScore } from "./selectors";
import * as talk from "./talk";
import * as bench from "./workbench";

const reading = () => page.value.name === "review" && review.request.value !== null;
const can = (what: "comment" | "push" | "merge") => reading() && (review.request.value?.can[what] ?? false);

export const reviewCommands: readonly Command[] = [
  {
    id: "ask",
    title: "Ask for a review of the shown turn",
    group: "Candidate",
    keys: "Alt+A",
    enabled: () => bench.runId.value !== null && bench.player.value === null && Boolean(bench.shown.value?.evaluation),
    run: () => {
      const turn = bench.shown.value;
      if (turn && bench.runId.value) startAsking(bench.detail.value, bench.runId.value, turn.number, turnScore(turn));
    },
  },
  { id: "reviews", title: "Reviews", group: "View", keys: "Alt+R", run: () => toggleSide("reviews") },
  { id: "hunk.next", title: "Next change", group: "Review", keys: "Alt+J", enabled: reading, run: () => review.diffView.value?.nextHunk(1) },
  { id: "hunk.previous", title: "Previous change", group: "Review", keys: "Alt+K", enabled: reading, run: () => review.diffView.value?.nextHunk(-1) },
  { id: "thread.next", title: "Next unresolved thread", group: "Review", keys: "Alt+U", enabled: reading, run: () => review.nextThread(1) },
  {
    id: "thread.previous",
    title: "Previous unresolved thread",
    group: "Review",
    keys: "Alt+Shift+U",
    enabled: reading,
    run: () => review.nextThread(-1),
  },
  {
    id: "comment",
    title: "Comment on the line",
    group: "Review",
    keys: "Alt+C",
    enabled: reading,
    run: () => {
      const lines = review.diffView.value?.selected();
      if (lines) review.commentOn(lines.side, lines.line, lines.endLine);
    },
  },
  { id: "submit", title: "Submit the review…", group: "Review", keys: "Alt+S", enabled: () => can("comment"), run: () => (review.dialog.value = "submit") },
  { id: "revision.newest", title: "Show the newest revision", group: "Review", enabled: reading, run: () => void review.showHead() },
  { id: "revision.edit", title: "Edit into a new revision…", group: "Review", enabled: () => can("push"), run: () => (review.dialog.value = "edit") },
  {
    id: "review.inline",
    title: "Inline or side by side",
    group: "Review",
    keys: "Alt+I",
    enabled: reading,
    run: () => review.setView({ inline: !review.view.value.inline }),
  },
  {
    id: "review.space",
    title: "Changes of white space, or not",
    group: "Review",
    enabled: reading,
    run: () => review.setView({ ignoreSpace: !review.view.value.ignoreSpace }),
  },
  { id: "review.link", title: "Copy a link to this place", group: "Review", enabled: reading, run: () => void copyLink() },
  { id: "merge", title: "Merge into the library", group: "Review", enabled: () => can("merge"), run: () => void talk.merge() },
  { id: "workspace", title: "Workspace: members, invitations, quotas", group: "View", run: () => goTo({ name: "workspace" }) },
  { id: "account", title: "API tokens and sessions", group: "View", run: () => goTo({ name: "account" }) },
  { id: "bench", title: "Workbench", group: "View", run: () => bench.showBench() },
];

async function copyLink(): Promise<void> {
  const lines = review.diffView.value?.selected();
  const thread = review.currentThread.value;
  await talk.copyLink(thread || lines?.side !== "new" ? null : lines.line, thread);
}
