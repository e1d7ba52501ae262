/** A verdict, with all drafts at once. */
import type { JSX } from "preact";
import type { ReviewVerdict } from "../../generated/events";
import { plural } from "../../state/format";
import * as review from "../../state/review";
import { submitReview } from "../../state/talk";
import { hasDraft } from "../../state/threads";
import { setReview, typed } from "../../state/typed";
import { isMac } from "../../state/commands";
import { Dialog } from "../overlays";
import { IconButton } from "../parts";

const VERDICTS: { verdict: ReviewVerdict; title: string; words: string }[] = [
  { verdict: "comment", title: "Comment", words: "without a verdict" },
  { verdict: "approve", title: "Approve", words: "it may go into the library" },
  { verdict: "request_changes", title: "Request changes", words: "it waits for its author" },
];

export function SubmitDialog(): JSX.Element | null {
  const request = review.request.value;
  if (!request) return null;
  const { verdict, body } = typed.value.review;
  const drafts = hasDraft(review.threads.value);
  const shown = review.to.value;
  const close = () => (review.dialog.value = null);
  const allowed = request.can.approve;
  const ready = review.sending.value === null && (verdict !== "comment" || drafts > 0 || body.trim() !== "") && (allowed || verdict === "comment");
  const unsent = typed.value.boxes.filter((it) => it.body.trim()).length;
  return (
    <Dialog label="Submit the review" onClose={close}>
      <div class="dialog-header">
        <h2>Submit the review of revision {request.head.number}</h2>
        <IconButton title="Close" icon="close" onClick={close} />
      </div>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) void submitReview();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (isMac ? event.metaKey : event.ctrlKey) && ready) void submitReview();
        }}
      >
        {shown && shown.id !== request.head.id ? <p class="tone-warn">You are looking at revision {shown.number}. What you submit is about revision {request.head.number}, the newest.</p> : null}
        <fieldset class="verdicts">
          <legend class="visually-hidden">Verdict</legend>
          {VERDICTS.map((it) => (
            <label key={it.verdict}>
              <input
                type="radio"
                name="verdict"
                checked={verdict === it.verdict}
                disabled={it.verdict !== "comment" && !allowed}
                onChange={() => setReview({ verdict: it.verdict })}
              />
              <strong>{it.title}</strong> <span class="muted">{it.words}</span>
            </label>
          ))}
          {allowed ? null : <p class="muted">{request.can.why.approve ?? "You cannot give a verdict on this request."}</p>}
        </fieldset>
        <textarea
          rows={4}
          aria-label="What you say about the whole"
          placeholder="About the whole (Markdown, optional)"
          autoFocus
          value={body}
          onInput={(event) => setReview({ body: event.currentTarget.value })}
        />
        <p class="muted">
          {drafts ? `${plural(drafts, "draft comment")} will be sent with it.` : "No draft comments."}
          {unsent ? ` ${plural(unsent, "comment box", "comment boxes")} with text ${unsent === 1 ? "is" : "are"} not part of it yet: press “Add to review” there.` : ""}
        </p>
        <div class="dialog-buttons">
          <button type="button" class="secondary" onClick={close}>
            Not yet
          </button>
          <button type="submit" class="primary" disabled={!ready}>
            {review.sending.value === "submit" ? "Sending" : "Submit"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
