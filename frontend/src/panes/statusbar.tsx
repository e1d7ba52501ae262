/** One line at the bottom: is it live, what judges, how far, where the cursor is. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { agentTitle } from "../state/choice";
import { active, kind, unsaved } from "../state/documents";
import { compact, money, plural, seconds } from "../state/format";
import { KIND_WORDS } from "../state/languages";
import { toggleSide } from "../state/layout";
import { page } from "../state/page";
import * as review from "../state/review";
import { EMPTY_RUN } from "../state/run";
import { spending } from "../state/selectors";
import * as bench from "../state/workbench";
import { SignView } from "./parts";

const clock = signal(Date.now());
export const online = signal(typeof navigator === "undefined" || navigator.onLine);

export function StatusBar(): JSX.Element {
  const onBench = page.value.name === "bench";
  const { started, turns, ended, startedAt, lastAt } = onBench ? bench.run.value : EMPTY_RUN;
  const document = onBench ? active.value : null;
  const cursor = bench.cursor.value;
  const elapsed = ended ? ended.seconds : startedAt !== null && lastAt !== null ? (lastAt - startedAt) / 1000 : null;
  const agent = agentTitle.value;
  const spent = !onBench ? null : spending(bench.run.value, bench.detail.value?.turns_again ?? []);
  return (
    <footer class="statusbar">
      <ConnectionState />
      {started ? (
        <span class="status-item" title="Backend and target of this run">
          {started.backend} · {started.target}
        </span>
      ) : null}
      {onBench ? (
        <span class="status-item" title="Who writes the candidates">
          {agent}
        </span>
      ) : null}
      {turns.length ? (
        <span class="status-item num">
          {plural(turns.length, "turn")}
          {elapsed === null ? "" : ` · ${seconds(elapsed)}`}
        </span>
      ) : null}
      {spent ? (
        <span class="status-item num" title="Tokens of prompts and answers, failed attempts included; cost in the currency of the model's price">
          {spent.estimated ? "~" : ""}
          {compact(spent.prompt)} in · {compact(spent.completion)} out
          {spent.cost === null ? "" : ` · ${money(spent.cost)}`}
        </span>
      ) : null}
      <span class="grow" />
      {unsaved.value ? (
        <span class="status-item tone-warn" title="This browser does not let the page keep anything">
          drafts are not kept
        </span>
      ) : null}
      {cursor ? (
        <span class="status-item num">
          Ln {cursor.line}, Col {cursor.column}
        </span>
      ) : null}
      {document ? <span class="status-item">{cursor?.where === "candidate" ? "CUDA" : KIND_WORDS[kind(document)]}</span> : null}
      <button type="button" class="status-item" title="Settings and theme" onClick={() => toggleSide("settings")}>
        {bench.bootstrap.value?.version ? `Kernelwright ${bench.bootstrap.value.version}` : "Settings"}
      </button>
    </footer>
  );
}

function ConnectionState(): JSX.Element {
  const onBench = page.value.name === "bench";
  const connection = onBench ? bench.connection.value : page.value.name === "review" ? review.connection.value : null;
  const { lastSeq, ended } = onBench ? bench.run.value : { lastSeq: 0, ended: null };
  const waiting = connection?.state === "waiting" ? connection : null;
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(() => (clock.value = Date.now()), 250);
    return () => clearInterval(timer);
  }, [waiting]);
  const seq = lastSeq ? <span class="num status-seq">· seq {lastSeq}</span> : null;
  if (onBench && bench.player.value) {
    return (
      <span class="status-item">
        <SignView sign={{ shape: "◇", word: "recorded run", tone: "muted" }} />
        {seq}
      </span>
    );
  }
  if (!online.value) {
    return (
      <span class="status-item">
        <SignView sign={{ shape: "○", word: "offline; drafts are kept, runs go on", tone: "warn" }} />
      </span>
    );
  }
  if (waiting) {
    const left = Math.max(0, Math.ceil((waiting.retryAt - clock.value) / 1000));
    return (
      <button type="button" class="status-item" title="Connect again now" onClick={onBench ? bench.reconnect : review.reconnect}>
        <SignView sign={{ shape: "○", word: `not connected, again in ${left} s`, tone: "warn" }} />
        {seq}
      </button>
    );
  }
  if (ended || connection?.state === "closed") {
    return (
      <span class="status-item">
        <SignView sign={{ shape: "■", word: "ended", tone: "muted" }} />
        {seq}
      </span>
    );
  }
  if (!connection) {
    return (
      <span class="status-item">
        <SignView sign={{ shape: "●", word: "ready", tone: "muted" }} />
      </span>
    );
  }
  const sign =
    connection.state === "live"
      ? ({ shape: "●", word: "live", tone: "good" } as const)
      : ({ shape: "◐", word: connection.state === "replaying" ? "catching up" : "connecting", tone: "busy" } as const);
  return (
    <span class="status-item" data-connection={connection.state}>
      <SignView sign={sign} />
      {seq}
    </span>
  );
}
