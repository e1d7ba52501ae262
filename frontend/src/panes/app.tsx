/** The whole page: panes, the bars between them, and the keys. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { commandFor, isEnabled, overlay } from "../state/commands";
import { layout, LIMITS, setLayout } from "../state/layout";
import { dismiss, notices } from "../state/notices";
import { page } from "../state/page";
import { ActivityBar } from "./activity";
import { CandidatePane } from "./candidate";
import { EvidencePane } from "./evidence/evidence";
import { Frame } from "./frame";
import { Notices } from "./notices";
import { Overlays } from "./overlays";
import { Panel } from "./panel/panel";
import { Splitter } from "./parts";
import { AskDialog } from "./review/ask";
import { ReviewPage } from "./review/page";
import { SidePane } from "./side";
import { openFiles, SourcePane } from "./source";
import { StatusBar } from "./statusbar";
import { PlaybackBar, Timeline } from "./timeline";
import { TitleBar } from "./titlebar";
import { AccountPage } from "./workspace/account";
import { WorkspacePage } from "./workspace/workspace";

export function App(): JSX.Element {
  useKeys();
  useEffect(() => {
    // A file dropped beside the source pane must not replace the page.
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      void openFiles([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  const { side, sideOpen } = layout.value;
  return (
    <div class="app">
      <TitleBar />
      <div class="middle">
        <ActivityBar />
        {sideOpen ? (
          <>
            <aside class="pane side-pane" style={{ width: `${side}px` }} aria-label="Side pane">
              <SidePane />
            </aside>
            <Splitter
              label="Width of the side pane"
              orientation="vertical"
              value={side}
              {...LIMITS.side}
              step={16}
              perPixel={() => 1}
              onChange={(value) => setLayout({ side: value })}
              onToggle={() => setLayout({ sideOpen: false })}
            />
          </>
        ) : null}
        <Centre />
      </div>
      <StatusBar />
      <Overlays />
      <AskDialog />
      <Notices />
    </div>
  );
}

/** The bench stays where it is behind another page: its editors keep their undo and their place. */
function Centre(): JSX.Element {
  const name = page.value.name;
  return (
    <>
      <div class="page" hidden={name !== "bench"}>
        <Frame panel={<Panel />} aside={<EvidencePane />} asideLabel="Width of the evidence">
          <Editors />
          <PlaybackBar />
          <Timeline />
        </Frame>
      </div>
      {name === "review" ? <ReviewPage /> : name === "workspace" ? <WorkspacePage /> : name === "account" ? <AccountPage /> : null}
    </>
  );
}

function Editors(): JSX.Element {
  const row = useRef<HTMLDivElement>(null);
  const { source } = layout.value;
  return (
    <div class="editors" ref={row}>
      <div class="editor-column" style={{ flex: `${source} 1 0` }}>
        <SourcePane />
      </div>
      <Splitter
        label="Share of the source editor"
        orientation="vertical"
        value={source}
        {...LIMITS.source}
        step={0.02}
        perPixel={() => 1 / Math.max(row.current?.clientWidth ?? 1, 1)}
        onChange={(value) => setLayout({ source: value })}
        onToggle={() => setLayout({ source: 0.42 })}
      />
      <div class="editor-column" style={{ flex: `${1 - source} 1 0` }}>
        <CandidatePane />
      </div>
    </div>
  );
}

/** Escape: menus and notices go. */
function dismissAll(): void {
  closeMenus();
  for (const notice of notices.value) dismiss(notice.id);
}

function closeMenus(except: EventTarget | null = null): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
    if (!(except instanceof Node && menu.contains(except))) menu.open = false;
  }
}

/** In the capture phase, so that the page's keys work inside the editors too. */
function useKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      const typing = target !== null && (target.isContentEditable || target.closest("input, textarea, select, .monaco-editor") !== null);
      if (event.key === "Escape" && overlay.value === null && !target?.closest(".monaco-editor")) dismissAll();
      const it = commandFor(event, typing);
      if (!it) return;
      if (overlay.value !== null && it.id !== overlay.value) return;
      event.preventDefault();
      event.stopPropagation();
      if (isEnabled(it)) it.run();
    };
    const onPointer = (event: PointerEvent) => closeMenus(event.target);
    window.addEventListener("keydown", onKey, { capture: true });
    window.addEventListener("pointerdown", onPointer);
    return () => {
      window.removeEventListener("keydown", onKey, { capture: true });
      window.removeEventListener("pointerdown", onPointer);
    };
  }, []);
}
