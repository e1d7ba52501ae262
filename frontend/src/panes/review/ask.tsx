/** Asking for a review of a turn. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { ask, asking, canReview, people, sendingAsk, type Asked } from "../../state/ask";
import { openReview } from "../../state/review";
import { bootstrap } from "../../state/workbench";
import { current } from "../../state/workspaces";
import { goTo } from "../../state/page";
import { Dialog } from "../overlays";
import { fieldText, IconButton } from "../parts";

export function AskDialog(): JSX.Element | null {
  return asking.value ? <Ask asked={asking.value} /> : null;
}

function Ask({ asked }: { asked: Asked }): JSX.Element {
  const withScore = useSignal(false);
  const close = () => (asking.value = null);
  const me = bootstrap.value?.user.id;
  const others = (people.value ?? []).filter((it) => it.user !== me);
  const able = others.filter(canReview);
  return (
    <Dialog label="Ask for a review" onClose={close}>
      <div class="dialog-header">
        <h2>
          Ask for a review of turn {asked.turn}
          {asked.score === null ? "" : `, score ${asked.score.toFixed(0)}`}
        </h2>
        <IconButton title="Close" icon="close" onClick={close} />
      </div>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const data = new FormData(form);
          const rule = {
            approvals: Number(data.get("approvals")),
            no_unresolved: data.has("no_unresolved"),
            verdict_passed: data.has("verdict_passed"),
            score_at_least: withScore.value ? Number(data.get("score")) : null,
            speedup_at_least: null,
          };
          const names = data.getAll("reviewer").map(String);
          void ask(fieldText(form, "title"), fieldText(form, "description"), names, rule).then((id) => {
            if (id) void openReview(id);
          });
        }}
      >
        <label>
          Title
          <input name="title" required maxLength={200} autoFocus defaultValue={asked.title} />
        </label>
        <label>
          What to look at
          <textarea name="description" rows={3} placeholder="Markdown, optional" />
        </label>
        <fieldset>
          <legend>Reviewers</legend>
          {people.value === null ? (
            <p class="muted">Looking who could</p>
          ) : able.length ? (
            <div class="choose-people">
              {able.map((it) => (
                <label key={it.user}>
                  <input type="checkbox" name="reviewer" value={it.username} defaultChecked={able.length === 1} />
                  {it.username} <span class="muted">{it.role}</span>
                </label>
              ))}
            </div>
          ) : (
            <p class="muted">
              {current.value?.personal
                ? "This is your own workspace: nobody else can see its reviews. "
                : others.length
                  ? "No other member may review. An admin can give them the role. "
                  : "You are the only member. "}
              <button
                type="button"
                class="link inline"
                onClick={() => {
                  close();
                  goTo({ name: "workspace" });
                }}
              >
                Members
              </button>
            </p>
          )}
        </fieldset>
        <fieldset>
          <legend>It may go into the library when</legend>
          <label class="inline">
            <input type="number" name="approvals" min={1} max={20} defaultValue="1" class="num small" aria-label="Approvals needed" /> approvals are given
          </label>
          <label class="inline">
            <input type="checkbox" name="no_unresolved" defaultChecked /> no thread is unresolved
          </label>
          <label class="inline">
            <input type="checkbox" name="verdict_passed" defaultChecked /> the judge has verified it
          </label>
          <label class="inline">
            <input type="checkbox" checked={withScore.value} onChange={(event) => (withScore.value = event.currentTarget.checked)} /> its score is at least{" "}
            <input
              type="number"
              name="score"
              min={0}
              max={100}
              class="num small"
              aria-label="Score at least"
              disabled={!withScore.value}
              defaultValue={String(Math.floor(asked.score ?? 80))}
            />
          </label>
        </fieldset>
        <div class="dialog-buttons">
          <button type="button" class="secondary" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={sendingAsk.value}>
            {sendingAsk.value ? "Asking" : "Ask"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
