/** What it became: the candidate of the shown turn, live while it is written, with its cost beside each line. */
import { computed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { CodeView, DiffView, Marker } from "../editor/monaco";
import { changedLines } from "../state/diff";
import { lineCosts } from "../state/metrics";
import { problems } from "../state/problems";
import { turnSign } from "../state/selectors";
import * as bench from "../state/workbench";
import { useEditors } from "./editors";
import { Gutter, GutterLegend } from "./gutter";
import { OutcomeStrip } from "./outcome";
import { CommandButton, PaneHeader, SignView } from "./parts";
import { NothingYet } from "./welcome";

const costs = computed(() => {
  const turn = bench.shown.value;
  return lineCosts(turn && !turn.writing ? turn.metrics : null, bench.lineView.value);
});

/** Settled lines that differ from the turn that this one was made from. */
const settled = computed(() => {
  const turn = bench.shown.value;
  if (!turn || turn.writing) return [];
  const base = bench.turns.value.find((it) => it.number === (turn.baseTurn ?? turn.number - 1));
  return base?.text ? changedLines(base.text, turn.text) : [];
});

export function CandidatePane(): JSX.Element {
  const turn = bench.shown.value;
  return (
    <section class="pane candidate-pane" aria-label="Candidate">
      {turn ? <Toolbar /> : <CandidateHeader />}
      <OutcomeStrip />
      {turn ? bench.diffOn.value && bench.previous.value ? <Diff /> : <Code /> : <NothingYet />}
    </section>
  );
}

function CandidateHeader(): JSX.Element {
  return (
    <PaneHeader>
      <span class="pane-title">Candidate</span>
    </PaneHeader>
  );
}

function Toolbar(): JSX.Element {
  const turn = bench.shown.value;
  if (!turn) return <span />;
  const others = bench.turns.value.filter((it) => it.number !== turn.number && it.text);
  return (
    <PaneHeader label="Candidate">
      <span class="pane-title">
        <span class="strong">{turn.file}</span> <span class="muted">turn {turn.number}</span>
      </span>
      <SignView sign={turnSign(turn)} />
      <span class="pane-subtitle ellipsis muted" title={turn.title}>
        {turn.title}
      </span>
      <span class="grow" />
      {others.length ? (
        <span class="joined">
          <CommandButton id="diff" icon="diff" label="Diff" pressed={bench.diffOn.value} />
          <label class="select">
            <span class="visually-hidden">Compare with</span>
            <select
              value={String(bench.previous.value?.number ?? "")}
              title="Compare with this turn"
              onChange={(event) => {
                const chosen = Number(event.currentTarget.value);
                if (!chosen) return;
                bench.diffAgainst.value = chosen === turn.number - 1 ? null : chosen;
                bench.diffOn.value = true;
              }}
            >
              {bench.previous.value ? null : <option value="">compare with</option>}
              {others.map((it) => (
                <option key={it.number} value={String(it.number)}>
                  with turn {it.number}
                </option>
              ))}
            </select>
          </label>
        </span>
      ) : null}
      <CommandButton id="improve" icon="sparkle" label="Improve this" />
      <CommandButton id="ask" icon="git-pull-request" label="Ask for review" />
      <CommandButton id="copy" icon="copy" />
      <CommandButton id="download" icon="desktop-download" />
    </PaneHeader>
  );
}

function Code(): JSX.Element {
  const editors = useEditors();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<CodeView | null>(null);
  const ready = useSignal(false);
  const scrolled = useSignal(0);

  useEffect(() => {
    if (!editors || !host.current) return;
    const created = new editors.CodeView(host.current, {
      ariaLabel: "Candidate: CUDA, read only",
      readOnly: true,
      folding: false,
      readOnlyMessage: "Candidates are kept as they were judged. “Improve this” starts a new run from one.",
    });
    created.onCursor = (line, column) => (bench.cursor.value = { line, column, where: "candidate" });
    created.onScroll = () => (scrolled.value += 1);
    view.current = created;
    ready.value = true;
    return () => {
      view.current = null;
      ready.value = false;
      created.dispose();
    };
  }, [editors]);

  useSignalEffect(() => {
    const turn = bench.shown.value;
    if (!ready.value || !view.current || !turn) return;
    view.current.show("candidate", turn.text, "cuda");
    view.current.setLines(turn.changed, settled.value);
    const newest = turn.changed.at(-1);
    if (turn.writing && newest && bench.following.value) view.current.follow(newest.end - 1);
    view.current.setHovers(new Map([...costs.value].map(([line, cost]) => [line, cost.words])));
    const markers: Marker[] = problems.value.flatMap((it) =>
      it.where === "candidate" && it.line !== null
        ? [{ severity: it.severity, line: it.line, column: it.column, message: it.message }]
        : [],
    );
    view.current.setMarkers("judge", markers);
    scrolled.value = scrolled.peek() + 1;
  });

  useSignalEffect(() => {
    const place = bench.reveal.value;
    if (ready.value && place?.where === "candidate") view.current?.revealLine(place.line, place.column, true);
  });

  const measured = costs.value.size > 0;
  return (
    <>
      <div class="editor-area candidate-area">
        <Gutter view={view} costs={costs.value} scrolled={scrolled} />
        <div ref={host} class="editor-host" />
        {editors ? null : <pre class="editor-fallback">{bench.shown.value?.text}</pre>}
      </div>
      <div class="pane-footer">
        {measured ? <GutterLegend /> : <span class="muted">{bench.shown.value?.writing ? "writing" : "Line costs appear once the candidate has been measured."}</span>}
      </div>
    </>
  );
}

function Diff(): JSX.Element {
  const editors = useEditors();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<DiffView | null>(null);
  const ready = useSignal(false);

  useEffect(() => {
    if (!editors || !host.current) return;
    const created = new editors.DiffView(host.current);
    view.current = created;
    ready.value = true;
    return () => {
      view.current = null;
      ready.value = false;
      created.dispose();
    };
  }, [editors]);

  useSignalEffect(() => {
    const turn = bench.shown.value;
    const before = bench.previous.value;
    // While a turn is being written there is nothing settled to compare: keep what was shown.
    if (!ready.value || !turn || !before || turn.writing) return;
    view.current?.show(
      { name: `Turn ${before.number}`, text: before.text },
      { name: `Turn ${turn.number}`, text: turn.text },
    );
  });

  const turn = bench.shown.value;
  const before = bench.previous.value;
  return (
    <>
      <div class="editor-area">
        <div ref={host} class="editor-host diff-host" />
      </div>
      <div class="pane-footer">
        <span class="muted">
          {turn?.writing
            ? `Turn ${turn.number} is being written; its diff appears when it has settled.`
            : `Turn ${before?.number ?? ""} → turn ${turn?.number ?? ""}; unchanged lines are folded.`}
        </span>
      </div>
    </>
  );
}
