/** A review: two revisions, what is said about them, and the way to a verdict. */
import type { JSX } from "preact";
import type { RevisionSummary } from "../../generated/events";
import { execute } from "../../state/commands";
import { plural } from "../../state/format";
import { stateSign } from "../../state/inbox";
import { setLayout } from "../../state/layout";
import * as review from "../../state/review";
import * as talk from "../../state/talk";
import { hasDraft, inOrder, revisionWords } from "../../state/threads";
import { showBench } from "../../state/workbench";
import { Frame } from "../frame";
import { CommandButton, Icon, IconButton, PaneHeader, SignView } from "../parts";
import { ReviewDiffView } from "./diff";
import { EditDialog } from "./edit";
import { ReviewAside } from "./aside";
import { SubmitDialog } from "./submit";
import { ThreadView } from "./thread";

export function ReviewPage(): JSX.Element {
  const request = review.request.value;
  if (!request) return <NotThere />;
  return (
    <>
      <Frame panel={<ThreadPanel />} aside={<ReviewAside request={request} />} asideLabel="Width of the review's evidence">
        <section class="pane review-pane" aria-label={`Review ${request.number}: ${request.title}`}>
          <Header />
          <Toolbar />
          <Strips />
          <ReviewDiffView />
          <Footer />
        </section>
      </Frame>
      {review.dialog.value === "submit" ? <SubmitDialog /> : null}
      {review.dialog.value === "edit" ? <EditDialog /> : null}
    </>
  );
}

function NotThere(): JSX.Element {
  const failed = review.failed.value;
  return (
    <main class="center page-main">
      <div class="empty-state" role="status">
        {failed ? (
          <>
            <p>{failed.message}</p>
            <div class="buttons">
              {failed.gone ? null : (
                <button type="button" class="primary" onClick={() => location.reload()}>
                  Try again
                </button>
              )}
              <button type="button" class="secondary" onClick={() => execute("reviews")}>
                Reviews
              </button>
              <button type="button" class="secondary" onClick={showBench}>
                Workbench
              </button>
            </div>
          </>
        ) : (
          <>
            <div class="progress-line" aria-hidden="true" />
            <p>Loading the review</p>
          </>
        )}
      </div>
    </main>
  );
}

function Header(): JSX.Element | null {
  const request = review.request.value;
  if (!request) return null;
  const drafts = hasDraft(review.threads.value);
  const busy = review.sending.value !== null;
  return (
    <PaneHeader>
      <SignView sign={stateSign(request.state)} />
      <span class="pane-title ellipsis" title={request.title}>
        <span class="strong">{request.title}</span> <span class="muted num">#{request.number}</span>
      </span>
      <span class="muted ellipsis">by {request.author.username}</span>
      <span class="grow" />
      {request.can.merge ? (
        <button type="button" class="primary" disabled={busy} onClick={() => execute("merge")}>
          <Icon name="git-merge" /> Merge into the library
        </button>
      ) : null}
      {request.can.comment && request.state !== "merged" && request.state !== "closed" ? (
        <button type="button" class={request.can.merge ? "secondary" : "primary"} title="Submit the review (Alt+S)" onClick={() => execute("submit")}>
          <Icon name="checklist" /> Submit review
          {drafts ? <span class="count num">{drafts}</span> : null}
        </button>
      ) : null}
    </PaneHeader>
  );
}

function Toolbar(): JSX.Element {
  const { from, to, view } = review;
  const options = view.value;
  return (
    <div class="pane-header review-toolbar" role="toolbar" aria-label="What is compared">
      <RevisionSelect label="Compare from" value={from.value?.id ?? null} not={to.value?.id ?? null} none="nothing: the whole" onChange={(id) => to.value && void review.compare(id, to.value.id)} />
      <Icon name="arrow-right" />
      <RevisionSelect label="Compare to" value={to.value?.id ?? null} not={null} none={null} onChange={(id) => id && void review.compare(from.value?.id ?? null, id)} />
      <span class="grow" />
      <CommandButton id="hunk.previous" icon="arrow-up" />
      <CommandButton id="hunk.next" icon="arrow-down" />
      <span class="toolbar-gap" />
      <CommandButton id="thread.previous" icon="chevron-up" />
      <span class="num muted toolbar-count" title="Unresolved threads">
        <Icon name="comment" /> {review.unresolved.value.length}
      </span>
      <CommandButton id="thread.next" icon="chevron-down" />
      <span class="toolbar-gap" />
      <CommandButton id="review.inline" icon="split-horizontal" pressed={!options.inline} />
      <IconButton
        title="Leave out changes of white space at the ends of lines"
        icon="whitespace"
        pressed={options.ignoreSpace}
        onClick={() => review.setView({ ignoreSpace: !options.ignoreSpace })}
      />
      <label class="select">
        <span class="visually-hidden">Unchanged lines around a change</span>
        <select
          value={String(options.context ?? "all")}
          title="Unchanged lines around a change"
          onChange={(event) => {
            const value = event.currentTarget.value;
            review.setView({ context: value === "all" ? null : Number(value) });
          }}
        >
          <option value="3">3 lines around</option>
          <option value="10">10 lines around</option>
          <option value="all">all lines</option>
        </select>
      </label>
    </div>
  );
}

interface SelectProps {
  label: string;
  value: string | null;
  not: string | null;
  /** What choosing none is called; null: one must be chosen. */
  none: string | null;
  onChange: (id: string | null) => void;
}

function RevisionSelect({ label, value, not, none, onChange }: SelectProps): JSX.Element {
  return (
    <label class="select revision-select">
      <span class="visually-hidden">{label}</span>
      <select value={value ?? ""} title={label} onChange={(event) => onChange(event.currentTarget.value || null)}>
        {none === null ? null : <option value="">{none}</option>}
        {review.choices.value.map((it) => (
          <option key={it.id} value={it.id} disabled={it.id === not}>
            {optionWords(it)}
          </option>
        ))}
      </select>
    </label>
  );
}

function optionWords(it: RevisionSummary): string {
  const marks = [it.id === review.head.value?.id ? "newest" : "", it.id === review.request.value?.base?.id ? "in the library" : ""].filter(Boolean);
  const score = it.score === null ? "" : `, ${it.score.toFixed(0)}`;
  return `r${it.number} ${revisionWords(it)}${score}${marks.length ? ` (${marks.join(", ")})` : ""}`;
}

/** What one must know before one reads on. */
function Strips(): JSX.Element {
  const newest = review.head.value;
  const shown = review.to.value;
  const moved = review.moved.value;
  const chosen = review.chosen.value;
  const judging = newest !== null && newest.state !== "judged";
  return (
    <>
      {moved?.box === null ? (
        <div class="strip moved-strip" role="alert">
          <Icon name="warning" />
          <span class="grow">The code moved while you wrote: revision {newest?.number} is the newest. Nothing was sent, and what you typed is kept.</span>
          <button type="button" class="secondary" onClick={() => void review.followCode()}>
            Show revision {newest?.number}
          </button>
        </div>
      ) : newest && shown && shown.id !== newest.id ? (
        <div class="strip">
          <Icon name="history" />
          <span class="grow ellipsis">
            Revision {shown.number} is shown; the newest is {newest.number}, {revisionWords(newest)}.
          </span>
          <button type="button" class="secondary" onClick={() => void review.showHead()}>
            Show what changed since
          </button>
        </div>
      ) : null}
      {judging ? (
        <div class="strip" role="status">
          <span class="sign tone-busy">
            <span class="shape">◐</span>
          </span>
          <span class="grow">{newest.state === "judging" ? "The judge is at revision" : "Revision"} {newest.number}{newest.state === "judging" ? "" : " waits for the judge"}.</span>
        </div>
      ) : null}
      {chosen.size ? (
        <div class="strip">
          <Icon name="edit" />
          <span class="grow">{plural(chosen.size, "suggestion")} chosen: one new revision takes them in.</span>
          <button type="button" class="primary" disabled={review.sending.value !== null} onClick={() => void talk.apply([...chosen])}>
            Apply {chosen.size === 1 ? "it" : "them"}
          </button>
          <button type="button" class="secondary" onClick={() => (review.chosen.value = new Set())}>
            None
          </button>
        </div>
      ) : null}
    </>
  );
}

function Footer(): JSX.Element {
  const diff = review.metrics.value;
  const whole = review.fromId.value === null;
  return (
    <div class="pane-footer">
      <span class="muted num">
        {whole
          ? "The whole of it. Choose at the left what to compare with."
          : diff
            ? `${diff.added} added, ${diff.removed} removed${diff.material ? "" : "; nothing but white space and comments"}`
            : ""}
      </span>
      <span class="grow" />
      <span class="muted">Press a line's number to comment on it, or Alt+C.</span>
    </div>
  );
}

/** Every thread, also those whose code is gone or whose revision is not shown: nothing is hidden as outdated. */
function ThreadPanel(): JSX.Element {
  const all = inOrder(review.threads.value);
  const open = all.filter((it) => !it.resolved);
  const resolved = all.filter((it) => it.resolved);
  return (
    <section class="pane panel" aria-label="Threads">
      <div class="pane-header panel-header">
        <span class="pane-title threads-title">Threads</span>
        <span class="muted num">{all.length ? `${open.length} unresolved, ${resolved.length} resolved` : ""}</span>
        <span class="grow" />
        <IconButton title="Close the panel (Ctrl+J)" icon="chevron-down" onClick={() => setLayout({ panelOpen: false })} />
      </div>
      <div class="panel-body threads" tabIndex={0} role="group" aria-label="List of threads">
        {all.length ? null : <p class="empty">Nothing has been said yet. Press a line's number, or Alt+C on a line, and write the first comment.</p>}
        {open.map((it) => (
          <ThreadView key={it.id} thread={it} placed={false} />
        ))}
        {resolved.length ? (
          <details class="resolved-threads">
            <summary>{plural(resolved.length, "resolved thread")}</summary>
            {resolved.map((it) => (
              <ThreadView key={it.id} thread={it} placed={false} />
            ))}
          </details>
        ) : null}
      </div>
    </section>
  );
}
