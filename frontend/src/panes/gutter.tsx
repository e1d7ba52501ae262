/** What each line costs, beside the code: a bar for the share of the work, a colour for the waste, and a number. */
import { useSignalEffect, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { CodeView } from "../editor/monaco";
import { LINE_VIEWS, scaleStep, type LineCost } from "../state/metrics";
import { lineView } from "../state/workbench";

const LINE_HEIGHT = 20;

export function Gutter({
  view,
  costs,
  scrolled,
}: {
  view: { current: CodeView | null };
  costs: ReadonlyMap<number, LineCost>;
  /** Changes whenever the code moves. */
  scrolled: ReadonlySignal<number>;
}): JSX.Element {
  const rows = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    if (scrolled.value >= 0 && rows.current && view.current) rows.current.style.transform = `translateY(${view.current.lineTop(1)}px)`;
  });
  const heaviest = Math.max(...[...costs.values()].map((it) => it.share), 1e-9);
  return (
    <div class="gutter" role="list" aria-label="Measured cost by line">
      <div ref={rows} class="gutter-rows">
        {[...costs.values()].map((cost) => (
          <div
            key={cost.line}
            role="listitem"
            class="gutter-cell"
            style={{ top: `${(cost.line - 1) * LINE_HEIGHT}px` }}
            title={[`Line ${cost.line}`, ...cost.words].join("\n")}
            aria-label={`Line ${cost.line}: ${cost.label || "no memory access"}`}
          >
            <span
              class={`gutter-bar metric-${scaleStep(cost.waste)}`}
              style={{ height: `${Math.max(2, Math.round(Math.sqrt(cost.share / heaviest) * 16))}px` }}
            />
            <span class="gutter-label">{cost.label}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** The scale in the pane's header: which number is shown, and what its colours mean. */
export function GutterLegend(): JSX.Element {
  return (
    <div class="legend">
      <label class="select">
        <span class="visually-hidden">Metric beside the lines</span>
        <select
          value={lineView.value}
          title="Which measurement stands beside each line"
          onChange={(event) => (lineView.value = event.currentTarget.value as typeof lineView.value)}
        >
          {LINE_VIEWS.map((it) => (
            <option key={it.id} value={it.id}>
              {it.title}
            </option>
          ))}
        </select>
      </label>
      <span class="scale" title="Colour: the share of this line's cost that is avoidable. Height: its share of the instructions.">
        <span class="muted">fine</span>
        {[0, 1, 2, 3, 4, 5, 6].map((step) => (
          <span key={step} class={`swatch metric-${step}`} />
        ))}
        <span class="muted">waste</span>
      </span>
    </div>
  );
}
