/** What is said and done in a review: comments, suggestions, verdicts, a new revision, the way into the library. */
import { batch } from "@preact/signals";
import type { AnchorInput, ReviewComment, ReviewThread, ReviewVerdict } from "../generated/events";
import * as rest from "../protocol/reviews";
import { loadInbox } from "./inbox";
import { announce, say, sayError } from "./notices";
import { askFor } from "./ask";
import * as review from "./review";
import { closeBox, setAnswer, setEdit, setReview, typed, type Box } from "./typed";

/** One at a time; `name` says which button waits. True when it was done. */
async function send(name: string, what: (id: string) => Promise<void>, box: string | null = null): Promise<boolean> {
  const id = review.request.value?.id;
  if (!id || review.sending.value !== null) return false;
  review.sending.value = name;
  try {
    await what(id);
    return true;
  } catch (error) {
    const moved = rest.codeMoved(error);
    if (moved) {
      review.moved.value = { ...moved, box };
      announce("The code moved. What you typed is kept.");
      await review.refresh();
    } else sayError(error);
    return false;
  } finally {
    review.sending.value = null;
  }
}

/** `take`: post it although the code has moved on; the thread goes along to where the code is now. */
export async function postBox(box: Box, draft: boolean, take = false): Promise<void> {
  const request = review.request.value;
  if (!request) return;
  const anchor: AnchorInput = {
    revision: box.revision,
    side: box.side === "old" && box.revision === request.base?.id ? "old" : "new",
    line: box.line,
    end_line: box.endLine,
    quoted: box.quoted,
  };
  const suggestion = box.suggestion === null ? null : { line: box.line, end_line: box.endLine, text: box.suggestion };
  // Who comments on what the page itself shows as older knows that it is older.
  const knowingly = box.revision !== request.head.id && box.revision === review.fromId.value;
  await send(
    `box:${box.key}`,
    async (id) => {
      const { body, evidence } = box;
      const made = await rest.startThread(id, { anchor, body, suggestion, draft, evidence, carry: take || knowingly });
      batch(() => {
        closeBox(box.key);
        review.moved.value = null;
        review.threads.value = [...review.threads.value.filter((it) => it.id !== made.id), made];
        review.currentThread.value = made.id;
      });
      announce(draft ? "Kept for your review" : "Commented");
      await review.refresh();
    },
    box.key,
  );
}

export async function answer(thread: ReviewThread, draft: boolean): Promise<void> {
  const written = typed.value.answers[thread.id];
  if (!written) return;
  const place = thread.place;
  const suggestion = written.suggestion !== null && place ? { line: place.line, end_line: place.end_line, text: written.suggestion } : null;
  await send(`answer:${thread.id}`, async () => {
    await rest.reply(thread.id, { body: written.body, suggestion, draft });
    setAnswer(thread.id, null);
    await review.refresh();
  });
}

export async function editComment(comment: ReviewComment): Promise<void> {
  const written = typed.value.answers[comment.id];
  if (!written) return;
  await send(`edit:${comment.id}`, async () => {
    await rest.changeComment(comment.id, { body: written.body });
    setAnswer(comment.id, null);
    await review.refresh();
  });
}

export async function deleteComment(comment: ReviewComment): Promise<void> {
  await send(`delete:${comment.id}`, async () => {
    await rest.deleteComment(comment.id);
    await review.refresh();
  });
}

export async function resolve(thread: ReviewThread, resolved: boolean): Promise<void> {
  await send(`resolve:${thread.id}`, async () => {
    await rest.setResolved(thread.id, resolved);
    announce(resolved ? "Resolved" : "Reopened");
    await review.refresh();
  });
}

export async function apply(comments: readonly string[]): Promise<void> {
  await send("apply", async (id) => {
    const made = await rest.applySuggestions(id, [...comments]);
    review.chosen.value = new Set();
    await review.refresh();
    await review.showHead();
    say(`Revision ${made.number} takes ${comments.length === 1 ? "the suggestion" : `${comments.length} suggestions`} in. It is being judged.`);
  });
}

export function choose(comment: string, wanted: boolean): void {
  const next = new Set(review.chosen.value);
  if (wanted) next.add(comment);
  else next.delete(comment);
  review.chosen.value = next;
}

export async function pushEdit(source: string, base: string): Promise<boolean> {
  return send("push", async (id) => {
    const made = await rest.pushSource(id, base, source);
    setEdit(null);
    review.dialog.value = null;
    await review.refresh();
    await review.showHead();
    say(`Revision ${made.number} is yours. It is being judged.`);
  });
}

export async function sendToAgent(thread: ReviewThread): Promise<void> {
  await send(`agent:${thread.id}`, async () => {
    const asked = await rest.sendToAgent(thread.id, null);
    say(asked.detail, "info", { title: "Open the run", run: () => askFor.value?.(asked.run) });
    await review.refresh();
  });
}

export async function submitReview(): Promise<void> {
  const { verdict, body } = typed.value.review;
  const seen = review.head.value;
  if (!seen) return;
  await send("submit", async (id) => {
    await rest.submit(id, verdict, body, seen.id);
    batch(() => {
      setReview({ verdict: "comment", body: "" });
      review.dialog.value = null;
    });
    announce(SUBMITTED[verdict]);
    await review.refresh();
    void loadInbox();
  });
}

const SUBMITTED: Record<ReviewVerdict, string> = {
  comment: "Your comments are sent.",
  approve: "Approved.",
  request_changes: "Changes requested.",
};

export async function merge(): Promise<void> {
  const seen = review.head.value;
  if (!seen) return;
  await send("merge", async (id) => {
    await rest.mergeRequest(id, seen.id);
    await review.refresh();
    say(`Revision ${seen.number} is in the library.`);
    void loadInbox();
  });
}

export async function setOpen(open: boolean): Promise<void> {
  await send("close", async (id) => {
    await (open ? rest.reopenRequest(id) : rest.closeRequest(id));
    await review.refresh();
    void loadInbox();
  });
}

/** Asks others, or fewer; asks again those whose approval went stale. */
export async function setReviewers(names: readonly string[]): Promise<boolean> {
  const request = review.request.value;
  if (!request) return false;
  return send("reviewers", async (id) => {
    await rest.changeRequest(id, request.version, { reviewers: [...names] });
    await review.refresh();
  });
}

export async function copyLink(line: number | null, thread: string | null): Promise<void> {
  const request = review.request.value;
  if (!request) return;
  const address = new URL(review.linkTo({ line, thread }), location.origin).href;
  try {
    await navigator.clipboard.writeText(address);
    say("The link is copied.");
  } catch {
    say(`The browser did not allow copying. The link: ${address}`, "error");
  }
}
