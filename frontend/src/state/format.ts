/** Numbers and times in the page's one way of writing them. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return WHOLE.format(value);
}

/** 3 significant figures with an SI prefix: 131072 -> "131 k". */
export function compact(value: number): string {
  const size = Math.abs(value);
  for (const [limit, unit] of [
    [1e12, " T"],
    [1e9, " G"],
    [1e6, " M"],
    [1e4, " k"],
  ] as const) {
    const by = limit === 1e4 ? 1e3 : limit;
    if (size >= limit) return `${(value / by).toPrecision(3)}${unit}`;
  }
  return Number.isInteger(value) ? count(value) : value.toPrecision(3);
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count(size) : size.toPrecision(3)} ${units[unit] ?? ""}`;
}

export function seconds(value: number): string {
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60
    ? `${minutes} min ${Math.floor(value % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** In the one currency of the server's prices. */
export function money(value: number): string {
  return value >= 1 || value === 0 ? value.toFixed(2) : value.toPrecision(2);
}

export function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio > 0.995 || ratio < 0.005 ? 0 : ratio < 0.1 ? 1 : 0)}%`;
}

export function scientific(value: number): string {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return String(value);
  return value.toExponential(1).replace("e", "e").replace("+", "");
}

/** A float that is not finite arrives as "NaN" or "Infinity", whatever the types say. */
export function asNumber(value: unknown): number {
  return Number(value);
}

/** How long ago, for lists: "now", "4 min", "3 h", "12 Nov". */
export function ago(iso: string, now: number): string {
  const then = Date.parse(iso);
  if (Number.isNaN(then)) return "";
  const elapsed = (now - then) / 1000;
  if (elapsed < 60) return "now";
  if (elapsed < 3600) return `${Math.floor(elapsed / 60)} min`;
  if (elapsed < 86_400) return `${Math.floor(elapsed / 3600)} h`;
  return new Date(then).toLocaleDateString("en", { day: "numeric", month: "short" });
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function dims(value: readonly number[]): string {
  const used = [...value];
  while (used.length > 1 && used.at(-1) === 1) used.pop();
  return used.map((n) => count(n)).join(" × ");
}
