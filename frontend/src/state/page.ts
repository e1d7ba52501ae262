/** Which page the centre shows, and its address: what is in the address bar can be sent to somebody. */
import { signal } from "@preact/signals";

/** Where in a review: which revisions, and the line or thread to stand on. */
export interface ReviewPlace {
  /** A revision's number; null: the newest. */
  revision: number | null;
  against: number | null;
  line: number | null;
  thread: string | null;
}

export type Page =
  | { name: "bench"; run: string | null }
  | { name: "review"; id: string; place: ReviewPlace }
  | { name: "workspace" }
  | { name: "account" };

export const NOWHERE: ReviewPlace = { revision: null, against: null, line: null, thread: null };

export function parseAddress(path: string, search: string): Page {
  const [, kind, id] = path.split("/");
  if (kind === "reviews" && id) {
    const query = new URLSearchParams(search);
    const number = (name: string) => {
      const value = Number(query.get(name));
      return Number.isInteger(value) && value > 0 ? value : null;
    };
    const place = { revision: number("revision"), against: number("against"), line: number("line"), thread: query.get("thread") };
    return { name: "review", id: decodeURIComponent(id), place };
  }
  if (kind === "workspace") return { name: "workspace" };
  if (kind === "settings") return { name: "account" };
  return { name: "bench", run: kind === "runs" && id ? decodeURIComponent(id) : null };
}

export function addressOf(page: Page): string {
  switch (page.name) {
    case "bench":
      return page.run ? `/runs/${encodeURIComponent(page.run)}` : "/";
    case "review": {
      const { revision, against, line, thread } = page.place;
      const known = Object.entries({ revision, against, line, thread }).filter(([, value]) => value !== null);
      const query = new URLSearchParams(known.map(([name, value]): [string, string] => [name, String(value)])).toString();
      return `/reviews/${encodeURIComponent(page.id)}${query ? `?${query}` : ""}`;
    }
    case "workspace":
      return "/workspace";
    case "account":
      return "/settings";
  }
}

const start: Page = typeof location === "undefined" ? { name: "bench", run: null } : parseAddress(location.pathname, location.search);
export const page = signal<Page>(start);

/** `replace`: the same page in another state, which Back should not stop at. */
export function goTo(next: Page, replace = false): void {
  page.value = next;
  const address = addressOf(next);
  if (location.pathname + location.search === address) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
}
