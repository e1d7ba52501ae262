/** Every action of the page, with its name and its key: the palette, the list of keys and the buttons read this. */
import { computed, signal } from "@preact/signals";
import { reviewCommands } from "./commands_review";
import * as docs from "./documents";
import { layout, openPanel, resetLayout, setLayout, sideView, toggleSide, type PanelTab, type ThemeChoice } from "./layout";
import { say } from "./notices";
import { page } from "./page";
import { problems } from "./problems";
import * as bench from "./workbench";

export interface Command {
  id: string;
  title: string;
  group: "Run" | "Candidate" | "Go" | "Review" | "View" | "Source" | "Recording" | "Help";
  /** "Mod" is Cmd on a Mac and Ctrl elsewhere. */
  keys?: string;
  enabled?: () => boolean;
  run: () => void;
}

export type Overlay = "palette" | "keys" | null;
export const overlay = signal<Overlay>(null);
/** Panes that own a file dialogue register it here. */
export const chooseFile = signal<(() => void) | null>(null);
export const inputsOpen = signal(false);

const PANELS: [PanelTab, string][] = [
  ["problems", "Problems"],
  ["log", "Compile log"],
  ["checks", "Checks"],
  ["agent", "Agent"],
  ["events", "Events"],
];
const THEMES: [ThemeChoice, string][] = [
  ["system", "as the system"],
  ["dark", "dark"],
  ["light", "light"],
  ["high-contrast", "high contrast"],
];

export const canTranslate = computed(() => docs.active.value !== null && !docs.active.value.recorded && !bench.submitting.value);
const hasCandidate = () => Boolean(bench.shown.value?.text);
const hasPlayer = () => bench.player.value !== null;

export const commands: readonly Command[] = [
  {
    id: "translate",
    title: "Translate",
    group: "Run",
    keys: "Mod+Enter",
    enabled: () => canTranslate.value,
    run: () => void bench.translate(),
  },
  { id: "stop", title: "Stop the run", group: "Run", keys: "Mod+.", enabled: () => bench.running.value, run: () => void bench.stop() },
  {
    id: "again",
    title: "Run again",
    group: "Run",
    enabled: () => bench.runId.value !== null && !bench.running.value,
    run: () => void bench.runAgain(),
  },
  {
    id: "resume",
    title: "Go on with the run",
    group: "Run",
    enabled: () => bench.detail.value?.resumable === true && !bench.running.value,
    run: () => void bench.resume(),
  },
  { id: "improve", title: "Improve this candidate", group: "Run", enabled: canImprove, run: () => void bench.improve() },
  { id: "download", title: "Download the shown .cu", group: "Candidate", enabled: hasCandidate, run: download },
  { id: "copy", title: "Copy the shown candidate", group: "Candidate", enabled: hasCandidate, run: () => void copy() },
  {
    id: "diff",
    title: "Diff with the turn before",
    group: "Candidate",
    keys: "Alt+D",
    enabled: () => bench.previous.value !== null,
    run: () => (bench.diffOn.value = !bench.diffOn.value),
  },
  {
    id: "turn.previous",
    title: "Previous turn",
    group: "Go",
    keys: "Alt+ArrowLeft",
    enabled: () => bench.turns.value.length > 0,
    run: () => bench.stepTurn(-1),
  },
  {
    id: "turn.next",
    title: "Next turn",
    group: "Go",
    keys: "Alt+ArrowRight",
    enabled: () => bench.turns.value.length > 0,
    run: () => bench.stepTurn(1),
  },
  {
    id: "turn.best",
    title: "Best turn",
    group: "Go",
    keys: "Alt+B",
    enabled: () => bench.run.value.bestTurn !== null,
    run: () => bench.selectTurn(bench.run.value.bestTurn),
  },
  { id: "turn.latest", title: "Follow the newest turn", group: "Go", enabled: () => bench.turns.value.length > 0, run: () => bench.selectTurn(null) },
  { id: "problem.next", title: "Next problem", group: "Go", keys: "F8", run: () => stepProblem(1) },
  { id: "problem.previous", title: "Previous problem", group: "Go", keys: "Shift+F8", run: () => stepProblem(-1) },
  { id: "new", title: "New source", group: "Source", keys: "Alt+N", run: () => docs.openScratch() },
  { id: "open", title: "Open a file…", group: "Source", keys: "Mod+O", run: () => chooseFile.value?.() },
  {
    id: "revert",
    title: "Back to the text as it was opened",
    group: "Source",
    enabled: () => docs.active.value !== null && docs.isDraft(docs.active.value),
    run: () => docs.active.value && docs.revert(docs.active.value.id),
  },
  {
    id: "close",
    title: "Close the source",
    group: "Source",
    keys: "Alt+W",
    enabled: () => docs.active.value !== null,
    run: () => docs.active.value && bench.closeDocument(docs.active.value.id),
  },
  {
    id: "inputs",
    title: "Inputs: sizes, extents, tolerance",
    group: "Source",
    keys: "Mod+I",
    enabled: () => docs.active.value !== null,
    run: () => (inputsOpen.value = !inputsOpen.value),
  },
  { id: "play", title: "Play or pause the recording", group: "Recording", keys: "Alt+P", enabled: hasPlayer, run: () => bench.player.value?.toggle() },
  { id: "skip", title: "Skip to the next turn of the recording", group: "Recording", enabled: hasPlayer, run: () => bench.player.value?.skipTurn() },
  { id: "skip.end", title: "Skip to the recording's end", group: "Recording", enabled: hasPlayer, run: () => bench.player.value?.skipToEnd() },
  { id: "side", title: "Explorer", group: "View", keys: "Mod+B", run: () => toggleSide("explorer") },
  { id: "panel", title: "Bottom panel", group: "View", keys: "Mod+J", run: () => setLayout({ panelOpen: !layout.value.panelOpen }) },
  { id: "evidence", title: "Evidence", group: "View", keys: "Alt+E", run: () => setLayout({ evidenceOpen: !layout.value.evidenceOpen }) },
  ...PANELS.map(([tab, name], index): Command => ({
    id: `panel.${tab}`,
    title: `Show ${name}`,
    group: "View",
    keys: `Alt+${index + 1}`,
    run: () => openPanel(tab),
  })),
  ...THEMES.map(([theme, name]): Command => ({
    id: `theme.${theme}`,
    title: `Theme: ${name}`,
    group: "View",
    run: () => setLayout({ theme }),
  })),
  { id: "layout.reset", title: "Reset the layout", group: "View", run: resetLayout },
  { id: "settings", title: "Settings", group: "View", run: () => toggleSide("settings") },
  { id: "palette", title: "All actions", group: "Help", keys: "Mod+K", run: () => toggleOverlay("palette") },
  { id: "keys", title: "List of keys", group: "Help", keys: "?", run: () => toggleOverlay("keys") },
  { id: "help", title: "Help and what this machine can do", group: "Help", run: () => toggleSide("help") },
  { id: "reconnect", title: "Reconnect now", group: "Help", enabled: () => bench.connection.value?.state === "waiting", run: bench.reconnect },
  ...reviewCommands,
];

/** What these do is seen on the bench: elsewhere their keys mean nothing, and the palette goes there first. */
const OF_BENCH: ReadonlySet<Command["group"]> = new Set(["Run", "Candidate", "Go", "Source", "Recording"]);

export function command(id: string): Command {
  const found = commands.find((it) => it.id === id);
  if (!found) throw new Error(`no command ${id}`);
  return found;
}

export function isEnabled(it: Command): boolean {
  return it.enabled?.() ?? true;
}

export function execute(id: string): void {
  const it = command(id);
  if (!isEnabled(it)) return;
  if (OF_BENCH.has(it.group)) bench.showBench();
  it.run();
}

/** Whether a key may mean this on the page that is shown. */
function belongsHere(it: Command): boolean {
  if (it.group === "Review") return page.value.name === "review";
  return page.value.name === "bench" || !OF_BENCH.has(it.group);
}

function canImprove(): boolean {
  return hasCandidate() && canTranslate.value && !bench.running.value;
}

function toggleOverlay(which: Exclude<Overlay, null>): void {
  overlay.value = overlay.value === which ? null : which;
}

let problemIndex = -1;

function stepProblem(by: number): void {
  const placed = problems.value.filter((it) => it.line !== null);
  if (!placed.length) {
    say("No problems with a place in the code.");
    return;
  }
  problemIndex = (problemIndex + by + placed.length) % placed.length;
  const next = placed[problemIndex];
  if (next?.line) bench.show(next.where, next.line, next.column ?? 1);
}

function download(): void {
  const turn = bench.shown.value;
  if (!turn) return;
  const stem = bench.run.value.started?.task.name ?? "kernel";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([turn.text], { type: "text/plain" }));
  link.download = `${stem}.turn${turn.number}.cu`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function copy(): Promise<void> {
  const turn = bench.shown.value;
  if (!turn) return;
  try {
    await navigator.clipboard.writeText(turn.text);
    say(`Turn ${turn.number} copied.`);
  } catch {
    say("The browser did not allow copying. Select the text in the editor and copy it there.", "error");
  }
}

/* Keys */

export const isMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

const NAMES: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", Enter: isMac ? "⏎" : "Enter" };

/** For people: "⌘⏎" on a Mac, "Ctrl+Enter" elsewhere. */
export function keyWords(keys: string): string {
  const parts = keys.split("+").map((part) => NAMES[part] ?? part);
  if (!isMac) return parts.map((part) => (part === "Mod" ? "Ctrl" : part)).join("+");
  return parts.map((part) => ({ Mod: "⌘", Alt: "⌥", Shift: "⇧" })[part] ?? part).join("");
}

interface KeyPress {
  key: string;
  code: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

export function matches(keys: string, event: KeyPress, mac = isMac): boolean {
  if (keys === "?") return event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey;
  const parts = keys.split("+");
  const key = parts.at(-1) ?? "";
  const mod = parts.includes("Mod");
  if ((mac ? event.metaKey : event.ctrlKey) !== mod) return false;
  if (mac ? event.ctrlKey : event.metaKey) return false;
  if (event.altKey !== parts.includes("Alt") || event.shiftKey !== parts.includes("Shift")) return false;
  // Option changes what a Mac's keys write, so letters and digits go by their place.
  if (/^[A-Z]$/.test(key)) return event.code === `Key${key}` || event.key.toUpperCase() === key;
  if (/^\d$/.test(key)) return event.code === `Digit${key}`;
  return event.key === key;
}

/** The command of a key press; single keys only outside text fields, and only while they are switched on. */
export function commandFor(event: KeyPress, typing: boolean): Command | null {
  for (const it of commands) {
    if (!it.keys || !matches(it.keys, event) || !belongsHere(it)) continue;
    if (it.keys === "?" && (typing || !layout.value.singleKeys)) continue;
    return it;
  }
  return null;
}

export function showsSide(view: typeof sideView.value): boolean {
  return layout.value.sideOpen && sideView.value === view;
}
