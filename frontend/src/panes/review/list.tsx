/** At the left: the reviews that wait on me, mine, and all of the workspace. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ReviewRequestSummary } from "../../generated/events";
import { ago, plural } from "../../state/format";
import { failed, inboxTab, lists, loadInbox, loadMore, stateSign, type InboxTab } from "../../state/inbox";
import { openReview, request } from "../../state/review";
import { current, slug } from "../../state/workspaces";
import { IconButton, SignView } from "../parts";

const TABS: { id: InboxTab; title: string; words: string }[] = [
  { id: "waiting", title: "Waiting", words: "Waiting on me" },
  { id: "mine", title: "Mine", words: "Asked for by me" },
  { id: "all", title: "All", words: "All of the workspace" },
  { id: "library", title: "Library", words: "What is in the library of the workspace" },
];

const EMPTY: Record<InboxTab, string> = {
  waiting: "Nothing waits on you.",
  mine: "You have not asked for a review here. Open a run, choose a turn and press “Ask for review”.",
  library: "Nothing is in the library yet. An approved review is merged into it.",
  all: "No review in this workspace yet. Open a run, choose a turn and press “Ask for review”.",
};

export function ReviewList(): JSX.Element {
  useEffect(() => void loadInbox(), []);
  const tab = inboxTab.value;
  const page = lists.value[tab];
  return (
    <>
      <div class="side-header">
        <h2>Reviews</h2>
        <IconButton title="Look again" icon="refresh" onClick={() => void loadInbox()} />
      </div>
      <div class="side-tabs" role="tablist" aria-label="Which reviews" onKeyDown={onTabKey}>
        {TABS.map((it) => (
          <button
            key={it.id}
            id={`reviews-${it.id}`}
            type="button"
            role="tab"
            class="panel-tab"
            title={it.words}
            aria-selected={it.id === tab}
            aria-controls="reviews-list"
            tabIndex={it.id === tab ? 0 : -1}
            onClick={() => (inboxTab.value = it.id)}
          >
            {it.title}
            {it.id === "waiting" && lists.value.waiting?.results.length ? <span class="count num">{lists.value.waiting.results.length}</span> : null}
          </button>
        ))}
      </div>
      <div class="scroll" id="reviews-list" role="tabpanel" aria-labelledby={`reviews-${tab}`} tabIndex={0}>
        {failed.value ? (
          <div class="empty">
            <p>{failed.value}</p>
            <button type="button" class="secondary" onClick={() => void loadInbox()}>
              Try again
            </button>
          </div>
        ) : null}
        {page && !page.results.length ? <p class="empty">{EMPTY[tab]}</p> : null}
        {tab !== "waiting" && current.value?.personal && page && !page.results.length ? (
          <p class="empty">This is your own workspace: nobody else is in it. Reviews need a workspace with others.</p>
        ) : null}
        <ul class="list">
          {(page?.results ?? []).map((it) => (
            <Row key={it.id} item={it} />
          ))}
        </ul>
        {page?.next ? (
          <button type="button" class="row link-row" onClick={() => void loadMore(tab)}>
            Show earlier reviews
          </button>
        ) : null}
      </div>
    </>
  );
}

function Row({ item }: { item: ReviewRequestSummary }): JSX.Element {
  return (
    <li>
      <button
        type="button"
        class="row two-line review-row"
        aria-current={request.value?.id === item.id ? "true" : undefined}
        title={`#${item.number} ${item.title}`}
        onClick={() => void openReview(item.id)}
      >
        <SignView sign={stateSign(item.state)} word={false} />
        <span class="grow">
          <span class="row-title">{item.title}</span>
          <span class="row-sub num">
            #{item.number} · {item.author.username} · r{item.head.number}
            {item.head.score === null ? "" : ` · ${item.head.score.toFixed(0)}`} · {ago(item.changed_at, Date.now())}
            {item.workspace === slug.value ? "" : ` · ${item.workspace}`}
          </span>
          {item.unresolved ? <span class="row-sub">{plural(item.unresolved, "unresolved thread")}</span> : null}
        </span>
      </button>
    </li>
  );
}

function onTabKey(event: KeyboardEvent): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (!by || event.altKey) return;
  const index = TABS.findIndex((it) => it.id === inboxTab.value);
  const next = TABS[(index + by + TABS.length) % TABS.length];
  if (!next) return;
  inboxTab.value = next.id;
  document.getElementById(`reviews-${next.id}`)?.focus();
  event.preventDefault();
}
