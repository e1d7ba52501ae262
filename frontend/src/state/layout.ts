/** Where the splitters stand, which panes are open, which theme: kept, and always resettable. */
import { computed, effect, signal } from "@preact/signals";
import { isRecord } from "../protocol/decode";
import { load, save } from "./storage";

export type ThemeChoice = "system" | "dark" | "light" | "high-contrast";
export type Theme = Exclude<ThemeChoice, "system">;
export type PanelTab = "problems" | "log" | "checks" | "agent" | "events";
export type SideView = "explorer" | "reviews" | "help" | "settings";

export interface Layout {
  side: number; // px
  sideOpen: boolean;
  evidence: number; // px
  evidenceOpen: boolean;
  panel: number; // px
  panelOpen: boolean;
  /** Share of the editors' width that the source has. */
  source: number;
  theme: ThemeChoice;
  singleKeys: boolean;
}

export const LIMITS = {
  side: { min: 160, max: 420 },
  evidence: { min: 220, max: 520 },
  panel: { min: 90, max: 560 },
  source: { min: 0.2, max: 0.8 },
} as const;

function initial(): Layout {
  const wide = typeof window === "undefined" || window.innerWidth >= 1600;
  return {
    side: wide ? 248 : 190,
    sideOpen: true,
    evidence: wide ? 344 : 272,
    evidenceOpen: true,
    panel: wide ? 240 : 196,
    panelOpen: true,
    source: wide ? 0.42 : 0.4,
    theme: "system",
    singleKeys: true,
  };
}

function restore(): Layout {
  const raw = load("layout");
  const layout = initial();
  if (!isRecord(raw)) return layout;
  const known = Object.fromEntries(
    Object.entries(raw).filter(([key, value]) => key in layout && typeof value === typeof layout[key as keyof Layout]),
  );
  return { ...layout, ...known };
}

export const layout = signal<Layout>(restore());
export const panelTab = signal<PanelTab>("agent");
export const sideView = signal<SideView>("explorer");

export function setLayout(change: Partial<Layout>): void {
  layout.value = { ...layout.value, ...change };
}

export function resetLayout(): void {
  const { theme, singleKeys } = layout.value;
  layout.value = { ...initial(), theme, singleKeys };
}

export function openPanel(tab: PanelTab): void {
  panelTab.value = tab;
  if (!layout.value.panelOpen) setLayout({ panelOpen: true });
}

export function toggleSide(view: SideView): void {
  const showing = layout.value.sideOpen && sideView.value === view;
  sideView.value = view;
  setLayout({ sideOpen: !showing });
}

export function keepLayout(): void {
  effect(() => void save("layout", layout.value));
}

/** What the system asks for; main.ts keeps it up to date. */
export const systemTheme = signal<Theme>("dark");
export const theme = computed<Theme>(() =>
  layout.value.theme === "system" ? systemTheme.value : layout.value.theme,
);
