/** Centre, the panel below it and what stands beside it, with the bars between: the same for the bench and a review. */
import type { ComponentChildren, JSX } from "preact";
import { layout, LIMITS, setLayout } from "../state/layout";
import { Splitter } from "./parts";

interface FrameProps {
  children: ComponentChildren;
  panel: JSX.Element;
  aside: JSX.Element;
  asideLabel: string;
}

export function Frame({ children, panel, aside, asideLabel }: FrameProps): JSX.Element {
  const it = layout.value;
  return (
    <>
      <main class="center">
        {children}
        {it.panelOpen ? (
          <>
            <Splitter
              label="Height of the panel"
              orientation="horizontal"
              value={it.panel}
              {...LIMITS.panel}
              step={16}
              perPixel={() => -1}
              onChange={(value) => setLayout({ panel: value })}
              onToggle={() => setLayout({ panelOpen: false })}
            />
            <div class="panel-holder" style={{ height: `${it.panel}px` }}>
              {panel}
            </div>
          </>
        ) : null}
      </main>
      {it.evidenceOpen ? (
        <>
          <Splitter
            label={asideLabel}
            orientation="vertical"
            value={it.evidence}
            {...LIMITS.evidence}
            step={16}
            perPixel={() => -1}
            onChange={(value) => setLayout({ evidence: value })}
            onToggle={() => setLayout({ evidenceOpen: false })}
          />
          <div class="evidence-holder" style={{ width: `${it.evidence}px` }}>
            {aside}
          </div>
        </>
      ) : null}
    </>
  );
}
