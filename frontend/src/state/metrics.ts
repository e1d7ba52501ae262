/** Measured metrics by source line: what a line costs, how much of that is waste, and both in words. */
import type { KernelMetrics, LineMetrics, Metrics } from "../generated/events";
import { compact, count, percent } from "./format";

export type LineView = "telling" | "sectors" | "conflicts" | "lanes" | "instructions";

export const LINE_VIEWS: readonly { id: LineView; title: string; unit: string }[] = [
  { id: "telling", title: "Most telling", unit: "" },
  { id: "sectors", title: "Sectors per request", unit: "sectors/request" },
  { id: "conflicts", title: "Bank conflicts", unit: "extra wavefronts" },
  { id: "lanes", title: "Active threads per warp", unit: "of 32" },
  { id: "instructions", title: "Instructions", unit: "share of the kernel" },
];

export interface LineCost {
  line: number;
  label: string;
  /** Avoidable share, 0..1: the place on the page's one metric scale. */
  waste: number;
  /** Share of all executed warp instructions, 0..1. */
  share: number;
  words: string[];
}

/** The bytes of one sector, and of what 32 lanes of 4 bytes need at best. */
const SECTOR = 32;
const USUAL_SECTORS = 4;

/** All launches of a turn together: a line that two launches ran is one line. */
export function mergeLines(kernels: readonly KernelMetrics[]): Map<number, LineMetrics> {
  const merged = new Map<number, LineMetrics>();
  for (const kernel of kernels) {
    for (const row of kernel.lines) {
      if (row.line < 1) continue;
      const before = merged.get(row.line);
      merged.set(row.line, before ? addRows(before, row) : row);
    }
  }
  return merged;
}

/** Counts add up; averages are weighted by what they are averages over. */
function addRows(a: LineMetrics, b: LineMetrics): LineMetrics {
  const sum = { ...a };
  for (const key of Object.keys(a) as (keyof LineMetrics)[]) {
    if (key !== "atomic_lanes_per_address") sum[key] = a[key] + b[key];
  }
  sum.line = a.line;
  sum.active_threads_per_warp =
    weighted(a.active_threads_per_warp, a.instructions, b.active_threads_per_warp, b.instructions) ?? 0;
  sum.atomic_lanes_per_address = weighted(
    a.atomic_lanes_per_address,
    a.atomics,
    b.atomic_lanes_per_address,
    b.atomics,
  );
  return sum;
}

/** null: an average over nothing. */
function weighted(a: number | null, ofA: number, b: number | null, ofB: number): number | null {
  const [weightA, weightB] = [a === null ? 0 : ofA, b === null ? 0 : ofB];
  const all = weightA + weightB;
  return all > 0 ? ((a ?? 0) * weightA + (b ?? 0) * weightB) / all : null;
}

interface Access {
  perRequest: number;
  ideal: number;
  waste: number;
}

/**
 * Sectors per request against what the same bytes would need. One request never takes less than one sector, so a
 * broadcast is not waste. Where the useful bytes are not known, 4-byte elements are assumed.
 */
export function access(requests: number, sectors: number, useful: number): Access | null {
  if (requests === 0 || sectors === 0) return null;
  const perRequest = sectors / requests;
  const ideal =
    useful > 0 ? Math.max(1, useful / requests / SECTOR) : Math.min(perRequest, USUAL_SECTORS);
  return { perRequest, ideal, waste: Math.max(0, 1 - ideal / perRequest) };
}

export function lineCosts(metrics: Metrics | null, view: LineView): Map<number, LineCost> {
  const costs = new Map<number, LineCost>();
  if (!metrics) return costs;
  const rows = mergeLines(metrics.kernels);
  let total = 0;
  for (const row of rows.values()) total += row.instructions;
  for (const row of rows.values()) {
    const share = total ? row.instructions / total : 0;
    const shown = show(row, view, share);
    if (shown) costs.set(row.line, { line: row.line, share, words: words(row, share), ...shown });
  }
  return costs;
}

function show(row: LineMetrics, view: LineView, share: number): { label: string; waste: number } | null {
  switch (view) {
    case "sectors":
      return sectors(row);
    case "conflicts":
      return conflicts(row);
    case "lanes":
      return lanes(row);
    case "instructions":
      return row.instructions ? { label: share < 0.01 ? "< 1%" : `${(share * 100).toFixed(0)}%`, waste: share } : null;
    case "telling": {
      const candidates = [spills(row), sectors(row), conflicts(row), row.divergent_branches ? lanes(row) : null];
      const known = candidates.filter((it) => it !== null);
      const worst = known.reduce<{ label: string; waste: number } | null>(
        (best, it) => (best === null || it.waste > best.waste ? it : best),
        null,
      );
      return worst ?? (row.instructions ? { label: "", waste: 0 } : null);
    }
  }
}

function sectors(row: LineMetrics): { label: string; waste: number } | null {
  const load = access(row.global_load_requests, row.global_load_sectors, row.global_load_bytes);
  const store = access(row.global_store_requests, row.global_store_sectors, row.global_store_bytes);
  const worse = load && store ? (load.waste >= store.waste ? load : store) : (load ?? store);
  return worse ? { label: `${worse.perRequest.toFixed(1)} sect`, waste: worse.waste } : null;
}

function conflicts(row: LineMetrics): { label: string; waste: number } | null {
  const requests = row.shared_load_requests + row.shared_store_requests;
  const extra = row.shared_load_bank_conflicts + row.shared_store_bank_conflicts;
  if (requests === 0 && extra === 0) return null;
  return { label: `${compact(extra)} confl`, waste: extra / (extra + Math.max(requests, 1)) };
}

function lanes(row: LineMetrics): { label: string; waste: number } | null {
  if (!row.instructions) return null;
  const active = row.active_threads_per_warp;
  return { label: `${active.toFixed(active < 31.95 ? 1 : 0)} of 32`, waste: Math.max(0, 1 - active / 32) };
}

function spills(row: LineMetrics): { label: string; waste: number } | null {
  return row.local_bytes ? { label: "spills", waste: 1 } : null;
}

function words(row: LineMetrics, share: number): string[] {
  const said: string[] = [];
  const load = access(row.global_load_requests, row.global_load_sectors, row.global_load_bytes);
  const store = access(row.global_store_requests, row.global_store_sectors, row.global_store_bytes);
  if (load) said.push(memoryWords("loads", load, row.global_load_requests));
  if (store) said.push(memoryWords("stores", store, row.global_store_requests));
  if (row.shared_load_requests || row.shared_load_bank_conflicts) {
    said.push(sharedWords("loads", row.shared_load_bank_conflicts, row.shared_load_requests));
  }
  if (row.shared_store_requests || row.shared_store_bank_conflicts) {
    said.push(sharedWords("stores", row.shared_store_bank_conflicts, row.shared_store_requests));
  }
  if (row.divergent_branches) {
    said.push(
      `${count(row.divergent_branches)} of ${count(row.branches)} branches split their warp: ` +
        `${row.active_threads_per_warp.toFixed(1)} of 32 threads are active here.`,
    );
  }
  if (row.local_bytes) said.push(`${compact(row.local_bytes)} bytes go through local memory (spilled registers).`);
  if (row.atomics) said.push(`${count(row.atomics)} atomic requests.`);
  if (row.barriers) said.push(`${count(row.barriers)} barrier arrivals, counted by warp.`);
  if (row.flop) said.push(`${compact(row.flop)} floating-point operations.`);
  if (row.instructions) {
    said.push(
      `${compact(row.instructions)} warp instructions, ${percent(share)} of the kernel; ` +
        `${row.active_threads_per_warp.toFixed(1)} of 32 threads active.`,
    );
  }
  return said;
}

function memoryWords(verb: string, it: Access, requests: number): string {
  const per = `Global ${verb}: ${it.perRequest.toFixed(1)} sectors per request`;
  const ideal = it.waste > 0.02 ? ` (${it.ideal.toFixed(1)} would do)` : " (as few as the bytes need)";
  return `${per}${ideal}, ${count(requests)} requests.`;
}

function sharedWords(verb: string, extra: number, requests: number): string {
  if (!extra) return `Shared ${verb}: no bank conflicts in ${count(requests)} requests.`;
  const each = requests ? `, ${(extra / requests).toFixed(1)} per request` : "";
  return `Shared ${verb}: ${count(extra)} extra wavefronts from bank conflicts${each}. Padding or a swizzle cures it.`;
}

/** Steps of the one metric scale; CSS has `--metric-0` (nothing wasted) to `--metric-6`. */
export const SCALE_STEPS = 7;

export function scaleStep(waste: number): number {
  return Math.round(Math.min(1, Math.max(0, waste)) * (SCALE_STEPS - 1));
}

const FAMILY_TITLES: Record<string, string> = {
  intensity: "Arithmetic intensity",
  balance: "Load balance",
  overheads: "Spills and launches",
};

export function familyTitle(slug: string): string {
  const words = slug.replaceAll("_", " ");
  return FAMILY_TITLES[slug] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Notes come one for each scored family, in the same order, then those of families that do not apply. */
export function familyNotes(metrics: Metrics): { byFamily: Map<string, string>; others: string[] } {
  const families = Object.keys(metrics.families);
  return {
    byFamily: new Map(families.map((slug, index) => [slug, metrics.notes[index] ?? ""])),
    others: metrics.notes.slice(families.length),
  };
}
