/** Beside the code: what the change did to the numbers, what is still missing, who has said what. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { CheckItem, ReviewRequestDetail, ReviewSubmission } from "../../generated/events";
import { canReview, loadPeople, people } from "../../state/ask";
import { ago, plural } from "../../state/format";
import { reviewerSign } from "../../state/inbox";
import * as review from "../../state/review";
import * as talk from "../../state/talk";
import { deltaRow, revisionWords } from "../../state/threads";
import { verdictSign } from "../../state/verdicts";
import { openRun } from "../../state/workbench";
import { Markdown } from "../markdown";
import { Icon, Section, SignView } from "../parts";

export function ReviewAside({ request }: { request: ReviewRequestDetail }): JSX.Element {
  return (
    <section class="pane evidence-pane review-aside" aria-label="Evidence and checklist">
      <div class="pane-header">
        <span class="pane-title">Evidence</span>
        <span class="muted num">
          {review.from.value ? `revision ${review.from.value.number} → ${review.to.value?.number ?? ""}` : `revision ${review.to.value?.number ?? ""}`}
        </span>
      </div>
      <div class="scroll">
        <Verdict />
        <Checklist request={request} />
        <Reviewers request={request} />
        <Numbers />
        {request.description ? (
          <Section title="About">
            <div class="aside-text">
              <Markdown text={request.description} />
            </div>
          </Section>
        ) : null}
        <Revisions />
        <Reviews />
        <End request={request} />
      </div>
    </section>
  );
}

function Verdict(): JSX.Element | null {
  const shown = review.to.value;
  if (!shown) return null;
  const score = shown.verdict === "passed" ? shown.score : null;
  return (
    <div class="verdict">
      <div class="verdict-line">
        <SignView sign={shown.state === "judged" ? verdictSign(shown.verdict) : { shape: "◐", word: shown.state === "judging" ? "being judged" : "waits for the judge", tone: "busy" }} />
        <span class="grow" />
        {shown.evaluation?.verification ? <span class="muted num">{plural(shown.evaluation.verification.draws, "draw")}</span> : null}
      </div>
      <div class="score-line">
        <span class={`score num${score === null ? " none" : ""}`}>{score === null ? "–" : score.toFixed(0)}</span>
        <span class="score-words">
          <span>structural score</span>
          <span class="muted">{shown.speedup === null ? "of 100; no speedup without a GPU" : `speedup ${shown.speedup.toFixed(2)}`}</span>
        </span>
      </div>
      {shown.verdict !== "passed" && shown.message ? <div class="verdict-message">{shown.message}</div> : null}
    </div>
  );
}

const CHECKS: Record<CheckItem["name"], string> = {
  approvals: "Approvals",
  no_changes_requested: "No changes requested",
  no_unresolved: "No unresolved thread",
  verdict_passed: "Verified by the judge",
  score: "Score",
  speedup: "Speedup",
};

function Checklist({ request }: { request: ReviewRequestDetail }): JSX.Element {
  const missing = request.checklist.filter((it) => !it.ok).length;
  return (
    <Section title="Checklist" aside={missing ? `${missing} missing` : "all there"}>
      <ul class="checklist">
        {request.checklist.map((it) => (
          <li key={it.name} data-check={it.name} data-ok={it.ok}>
            <SignView sign={{ shape: it.ok ? "●" : "○", word: CHECKS[it.name], tone: it.ok ? "good" : "warn" }} />
            <span class="visually-hidden">{it.ok ? "fulfilled: " : "missing: "}</span>
            <div class="muted">{it.detail}</div>
          </li>
        ))}
      </ul>
      {request.state === "merged" ? <p class="evidence-note tone-good">This kernel is in the library.</p> : null}
      {request.state === "approved" && !request.can.merge && request.can.why.merge ? <p class="evidence-note muted">{request.can.why.merge}</p> : null}
    </Section>
  );
}

/** Whom the author is about to ask; null: the list is not open. */
const choosing = signal<ReadonlySet<string> | null>(null);

function Reviewers({ request }: { request: ReviewRequestDetail }): JSX.Element {
  const open = request.state !== "closed" && request.state !== "merged";
  return (
    <Section title="Reviewers" aside={request.reviewers.length ? String(request.reviewers.length) : null}>
      {request.reviewers.length ? (
        <ul class="reviewers">
          {request.reviewers.map((it) => (
            <li key={it.username} class={it.state === "stale" ? "stale" : ""}>
              <span class="grow ellipsis">{it.username}</span>
              <SignView sign={reviewerSign(it.state)} />
              {it.revision ? <span class="muted num">r{review.numberOf(it.revision) ?? "?"}</span> : null}
            </li>
          ))}
        </ul>
      ) : (
        <p class="empty">Nobody is asked yet.</p>
      )}
      {open && request.can.push ? choosing.value ? <ChoosePeople request={request} chosen={choosing.value} /> : <AskOthers request={request} /> : null}
    </Section>
  );
}

function AskOthers({ request }: { request: ReviewRequestDetail }): JSX.Element {
  return (
    <button
      type="button"
      class="link aside-link"
      onClick={() => {
        choosing.value = new Set(request.reviewers.filter((it) => it.asked).map((it) => it.username));
        void loadPeople(request.workspace);
      }}
    >
      Ask others
    </button>
  );
}

function ChoosePeople({ request, chosen }: { request: ReviewRequestDetail; chosen: ReadonlySet<string> }): JSX.Element {
  const others = (people.value ?? []).filter((it) => it.username !== request.author.username);
  const able = others.filter(canReview);
  return (
    <div class="choose-people">
      {able.map((it) => (
        <label key={it.user}>
          <input
            type="checkbox"
            checked={chosen.has(it.username)}
            onChange={(event) => {
              const names = new Set(chosen);
              if (event.currentTarget.checked) names.add(it.username);
              else names.delete(it.username);
              choosing.value = names;
            }}
          />
          {it.username} <span class="muted">{it.role}</span>
        </label>
      ))}
      {people.value && !able.length ? <p class="muted">No other member may review. An admin gives the role under Members.</p> : null}
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={review.sending.value !== null || !able.length}
          onClick={() => void talk.setReviewers([...chosen]).then((done) => (done ? (choosing.value = null) : null))}
        >
          Ask them
        </button>
        <button type="button" class="secondary" onClick={() => (choosing.value = null)}>
          Cancel
        </button>
      </div>
    </div>
  );
}

function Numbers(): JSX.Element {
  const diff = review.metrics.value;
  const rows = (diff?.metrics ?? []).map(deltaRow);
  const compared = review.fromId.value !== null;
  const changed = rows.filter((it) => !it.same);
  return (
    <Section title="Numbers" aside={compared && rows.length ? `${changed.length} changed` : null}>
      {rows.length ? (
        <table class="deltas">
          <thead>
            <tr>
              <th scope="col">
                <span class="visually-hidden">What</span>
              </th>
              {compared ? <th scope="col">r{review.from.value?.number}</th> : null}
              <th scope="col">r{review.to.value?.number}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((it) => (
              <tr key={it.name} class={compared && it.same ? "same" : ""} title={compared && it.change ? `${it.title}: ${it.change}` : it.title}>
                <th scope="row">{it.title}</th>
                {compared ? <td class="num muted">{it.old}</td> : null}
                <td class="num">
                  {compared && !it.same ? <span class={`tone-${it.tone}`}>{it.shape} </span> : null}
                  {it.new}
                  {compared && it.tone === "good" ? <span class="visually-hidden">, better</span> : null}
                  {compared && it.tone === "bad" ? <span class="visually-hidden">, worse</span> : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="empty">{review.to.value?.state === "judged" ? "The judge measured nothing of this revision." : "Numbers appear once the judge has measured."}</p>
      )}
    </Section>
  );
}

function Revisions(): JSX.Element {
  const newest = review.head.value;
  return (
    <Section title="Revisions" aside={String(review.request.value?.revisions.length ?? "")}>
      <ul class="list">
        {[...(review.request.value?.revisions ?? [])].reverse().map((it) => (
          <li key={it.id}>
            <button
              type="button"
              class="row two-line"
              aria-current={review.toId.value === it.id ? "true" : undefined}
              title="Show this revision"
              onClick={() => void review.compare(review.fromId.value === it.id ? null : review.fromId.value, it.id)}
            >
              <SignView sign={it.state === "judged" ? verdictSign(it.verdict) : { shape: "◐", word: it.state, tone: "busy" }} word={false} />
              <span class="grow">
                <span class="row-title num">
                  Revision {it.number}
                  {it.id === newest?.id ? <span class="badge">newest</span> : null}
                </span>
                <span class="row-sub">
                  {revisionWords(it)} · {ago(it.created_at, Date.now())}
                </span>
              </span>
              {it.score === null ? null : <span class="num">{it.score.toFixed(0)}</span>}
            </button>
          </li>
        ))}
      </ul>
      {newest?.run ? (
        <button type="button" class="link aside-link" onClick={() => newest.run && void openRun(newest.run)}>
          Open its run
        </button>
      ) : null}
    </Section>
  );
}

const SAID: Record<ReviewSubmission["verdict"], string> = { comment: "commented", approve: "approved", request_changes: "asked for changes" };

function Reviews(): JSX.Element | null {
  const list = review.submissions.value;
  if (!list.length) return null;
  return (
    <Section title="Reviews given" aside={String(list.length)}>
      <ul class="reviews-given">
        {list.map((it) => (
          <li key={it.id}>
            <div>
              <strong>{it.author.username}</strong> {SAID[it.verdict]}{" "}
              <span class="muted num">
                r{review.numberOf(it.revision) ?? "?"} · {it.comments ? `${plural(it.comments, "comment")} · ` : ""}
                {ago(it.created_at, Date.now())}
              </span>
              {it.stale ? <span class="badge tone-warn">stale: the code has changed since</span> : null}
            </div>
            {it.body ? <Markdown text={it.body} /> : null}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function End({ request }: { request: ReviewRequestDetail }): JSX.Element | null {
  if (!request.can.close) return null;
  const closed = request.state === "closed";
  return (
    <div class="aside-end">
      <button type="button" class="secondary" disabled={review.sending.value !== null} onClick={() => void talk.setOpen(closed)}>
        <Icon name={closed ? "issue-reopened" : "circle-slash"} /> {closed ? "Reopen the request" : "Close the request"}
      </button>
    </div>
  );
}
