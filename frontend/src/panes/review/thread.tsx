/** One thread: what was said about some lines, in order, and what can be answered or done. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { ReviewComment, ReviewThread } from "../../generated/events";
import { ago } from "../../state/format";
import * as review from "../../state/review";
import * as talk from "../../state/talk";
import { isOpenSuggestion, lineWords, replaced } from "../../state/threads";
import { setAnswer, typed } from "../../state/typed";
import { openRun } from "../../state/workbench";
import { Icon, IconButton } from "../parts";
import { Markdown } from "../markdown";
import { Write } from "./write";

const confirming = signal<string | null>(null);

/** `placed`: it stands at its lines in the diff, so that the lines need not be named and quoted again. */
export function ThreadView({ thread, placed }: { thread: ReviewThread; placed: boolean }): JSX.Element {
  const answering = typed.value.answers[thread.id];
  const request = review.request.value;
  const draft = thread.comments.every((it) => it.draft);
  const current = review.currentThread.value === thread.id;
  const { place } = thread;
  const can = request?.can.comment ?? false;
  return (
    <article class={`thread${thread.resolved ? " resolved" : ""}${current ? " current" : ""}`} aria-label={`Thread on ${where(thread)}`}>
      <header class="thread-header">
        {placed ? null : (
          <button type="button" class="link" disabled={!place && thread.gone} onClick={() => review.showThread(thread)}>
            {place ? (place.side === "old" ? `base, ${lineWords(place.line, place.end_line)}` : capital(lineWords(place.line, place.end_line))) : capital(where(thread))}
          </button>
        )}
        {thread.gone ? <span class="badge tone-warn">code gone</span> : thread.moved ? <span class="muted">moved with its code</span> : null}
        {draft ? <span class="badge">draft</span> : null}
        {thread.resolved ? <span class="muted">resolved by {thread.resolved_by?.username ?? "somebody"}</span> : null}
        {thread.evidence ? (
          <span class="badge evidence" title="Evidence, as the judge found it then">
            {thread.evidence.name}: {thread.evidence.value}
          </span>
        ) : null}
        <span class="grow" />
        {thread.moved || thread.gone ? (
          <button type="button" class="link" onClick={() => void review.showOrigin(thread)}>
            as on revision {review.numberOf(thread.anchor.revision) ?? "?"}
          </button>
        ) : null}
        <IconButton title="Copy a link to this thread" icon="link" onClick={() => void talk.copyLink(null, thread.id)} />
      </header>
      {thread.gone || (!placed && !place) ? (
        <div class="quoted">
          {thread.gone ? <p class="muted">This code is not in the newest revision any more. It said:</p> : null}
          <pre tabIndex={0}>
            <code>{thread.anchor.quoted}</code>
          </pre>
        </div>
      ) : null}
      <ol class="comments">
        {thread.comments.map((it) => (
          <CommentView key={it.id} comment={it} thread={thread} />
        ))}
      </ol>
      {answering ? (
        <Write
          label={`Answer on ${where(thread)}`}
          body={answering.body}
          suggestion={answering.suggestion}
          original={place?.side === "new" ? quoteOf(thread) : null}
          busy={review.sending.value !== null}
          sendWords="Answer now"
          onChange={(change) => setAnswer(thread.id, { ...answering, ...change })}
          onSend={() => void talk.answer(thread, false)}
          onDraft={() => void talk.answer(thread, true)}
          onCancel={() => setAnswer(thread.id, null)}
        />
      ) : can ? (
        <div class="thread-actions">
          <button type="button" class="text-action" onClick={() => setAnswer(thread.id, { body: "", suggestion: null })}>
            <Icon name="reply" /> Answer
          </button>
          {draft ? null : (
            <button type="button" class="text-action" disabled={review.sending.value !== null} onClick={() => void talk.resolve(thread, !thread.resolved)}>
              <Icon name={thread.resolved ? "issue-reopened" : "check"} /> {thread.resolved ? "Reopen" : "Resolve"}
            </button>
          )}
          {!draft && request?.can.push ? (
            <button
              type="button"
              class="text-action"
              disabled={review.sending.value !== null}
              title="This thread becomes the instruction of the agent's next turn"
              onClick={() => void talk.sendToAgent(thread)}
            >
              <Icon name="robot" /> Send to the agent
            </button>
          ) : null}
          {thread.runs.map((run) => (
            <button key={run} type="button" class="link" onClick={() => void openRun(run)}>
              run {run.slice(0, 6)}
            </button>
          ))}
        </div>
      ) : null}
    </article>
  );
}

function where(thread: ReviewThread): string {
  const { anchor } = thread;
  return `${lineWords(anchor.line, anchor.end_line)} of revision ${review.numberOf(anchor.revision) ?? "?"}`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The lines as they are on the newest revision. */
function quoteOf(thread: ReviewThread): string | null {
  const { place } = thread;
  return place ? replaced({ line: place.line, end_line: place.end_line, text: "" }, review.head.value?.source) : null;
}

function CommentView({ comment, thread }: { comment: ReviewComment; thread: ReviewThread }): JSX.Element {
  const editing = typed.value.answers[comment.id];
  const own = review.isMine(comment.author?.username);
  return (
    <li class={`comment${comment.draft ? " draft" : ""}`}>
      <div class="comment-line">
        <strong>{comment.author?.username ?? "The agent"}</strong>
        <span class="muted num">
          {ago(comment.created_at, Date.now())}
          {comment.edited_at ? ", edited" : ""}
        </span>
        {comment.draft ? <span class="badge">only you see this</span> : null}
        <span class="grow" />
        {own && !comment.deleted && !editing ? (
          <span class="comment-actions">
            <IconButton title="Change the comment" icon="edit" onClick={() => setAnswer(comment.id, { body: comment.body, suggestion: null })} />
            {confirming.value === comment.id ? (
              <button type="button" class="danger" onBlur={() => (confirming.value = null)} onClick={() => void talk.deleteComment(comment)}>
                Delete
              </button>
            ) : (
              <IconButton title="Delete the comment…" icon="trash" onClick={() => (confirming.value = comment.id)} />
            )}
          </span>
        ) : null}
      </div>
      {comment.deleted ? <p class="muted">Deleted by its author.</p> : null}
      {editing ? (
        <Write
          label="Change the comment"
          body={editing.body}
          suggestion={null}
          original={null}
          busy={review.sending.value !== null}
          sendWords="Save"
          onChange={({ body }) => setAnswer(comment.id, { ...editing, ...(body === undefined ? {} : { body }) })}
          onSend={() => void talk.editComment(comment)}
          onCancel={() => setAnswer(comment.id, null)}
        />
      ) : comment.body ? (
        <Markdown text={comment.body} />
      ) : null}
      {comment.suggestion ? <SuggestionView comment={comment} thread={thread} /> : null}
    </li>
  );
}

function SuggestionView({ comment, thread }: { comment: ReviewComment; thread: ReviewThread }): JSX.Element | null {
  const { suggestion } = comment;
  if (!suggestion) return null;
  const before = comment.revision === thread.anchor.revision && sameLines(comment, thread) ? thread.anchor.quoted : replaced(suggestion, review.sources.value.get(comment.revision)?.source);
  const open = isOpenSuggestion(comment, thread);
  const chosen = review.chosen.value;
  const can = review.request.value?.can.push ?? false;
  const busy = review.sending.value !== null;
  return (
    <div class="suggestion" role="group" aria-label={`Suggested change of ${lineWords(suggestion.line, suggestion.end_line)}`}>
      <pre tabIndex={0}>
        {(before ?? "").split("\n").map((line, index) =>
          before === null ? null : (
            <del key={`old${index}`}>
              <span class="diff-sign">−</span>
              {line || " "}
            </del>
          ),
        )}
        {suggestion.text === "" ? null : (
          suggestion.text.split("\n").map((line, index) => (
            <ins key={`new${index}`}>
              <span class="diff-sign">+</span>
              {line || " "}
            </ins>
          ))
        )}
      </pre>
      <div class="suggestion-actions">
        {comment.applied_in ? (
          <span class="muted">taken into revision {review.numberOf(comment.applied_in) ?? "?"}</span>
        ) : !open || !can ? (
          <span class="muted">{thread.gone ? "The lines are gone; it cannot be applied." : comment.draft ? "" : "The author can take it in."}</span>
        ) : (
          <>
            <button type="button" class="secondary" disabled={busy} onClick={() => void talk.apply([comment.id])}>
              <Icon name="check" /> Apply
            </button>
            <label>
              <input type="checkbox" checked={chosen.has(comment.id)} onChange={(event) => talk.choose(comment.id, event.currentTarget.checked)} />
              with others
            </label>
          </>
        )}
      </div>
    </div>
  );
}

function sameLines(comment: ReviewComment, thread: ReviewThread): boolean {
  return comment.suggestion?.line === thread.anchor.line && comment.suggestion.end_line === thread.anchor.end_line;
}
