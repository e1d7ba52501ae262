/** The bottom panel: five ways to look at what happened. */
import type { JSX } from "preact";
import { keyWords } from "../../state/commands";
import { openPanel, panelTab, setLayout, type PanelTab } from "../../state/layout";
import { problemCount } from "../../state/problems";
import { failedChecks } from "../../state/selectors";
import * as bench from "../../state/workbench";
import { IconButton } from "../parts";
import { AgentTab } from "./agent";
import { ChecksTab } from "./checks";
import { EventsTab } from "./events";
import { LogTab } from "./log";
import { ProblemsTab } from "./problems";

const TABS: { id: PanelTab; title: string; view: () => JSX.Element; badge?: () => number }[] = [
  { id: "problems", title: "Problems", view: ProblemsTab, badge: () => problemCount.value },
  { id: "log", title: "Compile log", view: LogTab },
  { id: "checks", title: "Checks", view: ChecksTab, badge: () => (bench.shown.value ? failedChecks(bench.shown.value) : 0) },
  { id: "agent", title: "Agent", view: AgentTab },
  { id: "events", title: "Events", view: EventsTab },
];

export function Panel(): JSX.Element {
  const current = TABS.find((it) => it.id === panelTab.value) ?? TABS[0];
  const View = current?.view ?? ProblemsTab;
  return (
    <section class="pane panel" aria-label="Panel">
      <div class="pane-header panel-header">
        <div class="panel-tabs" role="tablist" aria-label="Panel" onKeyDown={onTabKey}>
          {TABS.map((it, index) => {
            const badge = it.badge?.() ?? 0;
            const selected = it.id === current?.id;
            return (
              <button
                key={it.id}
                type="button"
                role="tab"
                id={`tab-${it.id}`}
                class="panel-tab"
                aria-selected={selected}
                aria-controls="panel-body"
                tabIndex={selected ? 0 : -1}
                title={keyWords(`Alt+${index + 1}`)}
                onClick={() => openPanel(it.id)}
              >
                {it.title}
                {badge ? <span class="count num">{badge}</span> : null}
              </button>
            );
          })}
        </div>
        <span class="grow" />
        <IconButton title={`Close the panel (${keyWords("Mod+J")})`} icon="chevron-down" onClick={() => setLayout({ panelOpen: false })} />
      </div>
      <div class="panel-body" id="panel-body" role="tabpanel" aria-labelledby={`tab-${current?.id ?? ""}`} tabIndex={0}>
        <View />
      </div>
    </section>
  );
}

function onTabKey(event: KeyboardEvent): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (!by || event.altKey) return;
  const index = TABS.findIndex((it) => it.id === panelTab.value);
  const next = TABS[(index + by + TABS.length) % TABS.length];
  if (!next) return;
  openPanel(next.id);
  document.getElementById(`tab-${next.id}`)?.focus();
  event.preventDefault();
}
