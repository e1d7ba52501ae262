/** Which lines of `after` are new or changed against `before`: the thin bars beside a settled candidate. */
import type { LineRange } from "./run";

/** Longest common subsequence by lines; candidates are short, so the quadratic table is the simple choice. */
const LARGEST = 2_000;

export function changedLines(before: string, after: string): LineRange[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let top = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) top += 1;
  let tail = 0;
  while (tail < a.length - top && tail < b.length - top && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const left = a.slice(top, a.length - tail);
  const right = b.slice(top, b.length - tail);
  if (!right.length) return [];
  if (left.length > LARGEST || right.length > LARGEST) return [{ start: top + 1, end: top + 1 + right.length }];

  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const ranges: LineRange[] = [];
  let i = 0;
  for (let j = 0; j < right.length; ) {
    if (i < left.length && left[i] === right[j]) {
      i += 1;
      j += 1;
    } else if (i < left.length && at(i + 1, j) >= at(i, j + 1)) {
      i += 1;
    } else {
      const line = top + j + 1;
      const last = ranges.at(-1);
      if (last?.end === line) last.end += 1;
      else ranges.push({ start: line, end: line + 1 });
      j += 1;
    }
  }
  return ranges;
}
