import type { JSX } from "preact";
import { plural } from "../../state/format";
import { problems } from "../../state/problems";
import * as bench from "../../state/workbench";
import { Icon } from "../parts";

const ICONS = { error: "error", warning: "warning", note: "info" } as const;

/** What needs a person's eye, each with its place. */
export function ProblemsTab(): JSX.Element {
  const list = problems.value;
  const turn = bench.shown.value;
  if (!list.length) {
    return <p class="empty">{turn ? `No problems in turn ${turn.number}.` : "No problems."}</p>;
  }
  return (
    <ul class="list problems" aria-label={plural(list.length, "problem")}>
      {list.map((it, index) => (
        <li key={index}>
          <button
            type="button"
            class={`row problem severity-${it.severity}`}
            disabled={it.line === null}
            onClick={() => it.line !== null && bench.show(it.where, it.line, it.column ?? 1)}
          >
            <Icon name={ICONS[it.severity]} />
            <span class="visually-hidden">{it.severity}: </span>
            <span class="grow problem-text">
              {it.message}
              {it.hint ? <span class="muted"> {it.hint}</span> : null}
              {it.stale ? <span class="muted"> (said of the text before your edit)</span> : null}
            </span>
            <span class="muted">{it.owner}</span>
            <span class="muted num">
              {it.file}
              {it.line === null ? "" : ` [Ln ${it.line}${it.column === null ? "" : `, Col ${it.column}`}]`}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
