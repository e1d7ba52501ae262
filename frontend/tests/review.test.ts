import { beforeEach, describe, expect, it } from "vitest";
import type { CodeMoved, QuotaUseInfo, ReviewThread } from "../src/generated/events";
import { isWeb } from "../src/panes/markdown";
import { ApiError } from "../src/protocol/api";
import { decodeFrame } from "../src/protocol/decode";
import { codeMoved } from "../src/protocol/reviews";
import { browserName, tokenState } from "../src/state/account";
import { commandFor } from "../src/state/commands";
import { addressOf, NOWHERE, page, parseAddress } from "../src/state/page";
import { deltaRow, inOrder, isOpenSuggestion, lineWords, linesOf, metricTitle, placeIn, revisionWords, stepUnresolved } from "../src/state/threads";
import { boxKey, changeBox, closeBox, decodeTyped, moveBox, NOTHING, openBox, setAnswer, typed } from "../src/state/typed";
import { quotaLine, slugFor } from "../src/state/workspaces";

const HEAD = "head";
const OLD = "old";

function thread(known: Partial<ReviewThread> = {}): ReviewThread {
  return {
    id: "t",
    request: "r",
    revision: OLD,
    anchor: { revision: OLD, side: "new", line: 4, end_line: 5, quoted: "a\nb", context_hash: "" },
    place: { side: "new", line: 7, end_line: 8 },
    gone: false,
    moved: true,
    resolved: false,
    resolved_by: null,
    comments: [],
    evidence: null,
    runs: [],
    created_at: "2026-01-01T00:00:00Z",
    ...known,
  };
}

describe("a thread", () => {
  it("stands at its code on the newest revision, on whichever side that is", () => {
    expect(placeIn(thread(), { from: null, to: HEAD, head: HEAD })).toEqual({ side: "new", line: 7, endLine: 8 });
    expect(placeIn(thread(), { from: HEAD, to: "other", head: HEAD })).toEqual({ side: "old", line: 7, endLine: 8 });
  });
  it("stands where it was begun on that revision, also when its code is gone", () => {
    const gone = thread({ place: null, gone: true });
    expect(placeIn(gone, { from: null, to: OLD, head: HEAD })).toEqual({ side: "new", line: 4, endLine: 5 });
    expect(placeIn(gone, { from: OLD, to: HEAD, head: HEAD })).toEqual({ side: "old", line: 4, endLine: 5 });
    expect(placeIn(gone, { from: null, to: HEAD, head: HEAD })).toBeNull();
  });
  it("of the base stays on the old side", () => {
    const place = { side: "old" as const, line: 4, end_line: 5 };
    expect(placeIn(thread({ place }), { from: OLD, to: HEAD, head: HEAD })).toMatchObject({ side: "old", line: 4 });
  });
  it("is stepped to from the top of the code down, past the resolved ones and around the end", () => {
    const at = (id: string, line: number | null, resolved = false) =>
      thread({ id, resolved, gone: line === null, place: line === null ? null : { side: "new", line, end_line: line } });
    const all = [at("gone", null), at("c", 9), at("b", 5, true), at("a", 2)];
    expect(inOrder(all).map((it) => it.id)).toEqual(["a", "c", "gone", "b"]);
    expect(stepUnresolved(all, null, 1)?.id).toBe("a");
    expect(stepUnresolved(all, "a", 1)?.id).toBe("c");
    expect(stepUnresolved(all, "gone", 1)?.id).toBe("a");
    expect(stepUnresolved(all, null, -1)?.id).toBe("gone");
    expect(stepUnresolved(all, "b", 1)?.id).toBe("a");
    expect(stepUnresolved([at("b", 5, true)], null, 1)).toBeNull();
  });
  it("has suggestions that are open until they are taken in or their code is gone", () => {
    const comment = {
      id: "c", thread: "t", author: null, body: "", suggestion: { line: 4, end_line: 5, text: "x" }, revision: OLD,
      applied_in: null, draft: false, deleted: false, created_at: "", edited_at: null,
    };
    expect(isOpenSuggestion(comment, thread())).toBe(true);
    expect(isOpenSuggestion({ ...comment, applied_in: HEAD }, thread())).toBe(false);
    expect(isOpenSuggestion({ ...comment, draft: true }, thread())).toBe(false);
    expect(isOpenSuggestion(comment, thread({ gone: true }))).toBe(false);
  });
});

describe("words", () => {
  it("of lines, revisions and metrics", () => {
    expect([lineWords(3, 3), lineWords(3, 5)]).toEqual(["line 3", "lines 3–5"]);
    expect(linesOf("a\nb\nc", 2, 3)).toBe("b\nc");
    const by = { author: { username: "anna" }, turn: null, credited: ["rita", "anna"] };
    expect(revisionWords({ ...by, origin: "suggestion" })).toBe("suggestion of rita, taken in by anna");
    expect(revisionWords({ origin: "turn", turn: 3, author: null, credited: [] })).toBe("turn 3 of the agent");
    expect([metricTitle("dram bytes"), metricTitle("registers per thread")]).toEqual(["DRAM bytes", "Registers per thread"]);
  });
  it("of a change say its direction by shape and whether it is better", () => {
    expect(deltaRow({ name: "registers per thread", old: 40, new: 32, better: true })).toMatchObject({ change: "−8", shape: "▼", tone: "good" });
    expect(deltaRow({ name: "structural score", old: 90, new: 80.5, better: false })).toMatchObject({ change: "−9.5", tone: "bad" });
    expect(deltaRow({ name: "verdict", old: "passed", new: "wrong_result", better: false })).toMatchObject({ new: "wrong result", change: "changed" });
    expect(deltaRow({ name: "launches", old: 1, new: 1, better: null })).toMatchObject({ same: true, shape: "" });
    expect(deltaRow({ name: "launches", old: null, new: 1, better: null })).toMatchObject({ old: "–", tone: "muted" });
  });
});

describe("what is typed", () => {
  beforeEach(() => {
    typed.value = NOTHING;
  });
  const place = { revision: OLD, side: "new" as const, line: 4, endLine: 4, quoted: "x = 1;" };

  it("stays in its box until it is sent or put away", () => {
    const box = openBox(place);
    changeBox(box.key, { body: "why?" });
    expect(openBox(place).body).toBe("why?");
    expect(typed.value.boxes).toHaveLength(1);
    closeBox(box.key);
    expect(typed.value.boxes).toEqual([]);
  });
  it("goes along when the code moves; a suggestion that was written is kept as it is", () => {
    const there = { revision: HEAD, side: "new" as const, line: 9, endLine: 9, quoted: "x = 2;" };
    const box = openBox(place);
    changeBox(box.key, { body: "why?", suggestion: "x = 1;" });
    expect(moveBox(box.key, there)).toMatchObject({ body: "why?", line: 9, suggestion: "x = 2;", key: boxKey(HEAD, "new", 9, 9) });
    const other = openBox({ ...place, line: 5, endLine: 5 });
    changeBox(other.key, { suggestion: "y = 3;" });
    expect(moveBox(other.key, { ...there, line: 10, endLine: 10 })?.suggestion).toBe("y = 3;");
    expect(moveBox("none", there)).toBeNull();
  });
  it("is read again after a reload, and what is no draft is left out", () => {
    openBox(place);
    setAnswer("t", { body: "because", suggestion: null });
    expect(decodeTyped(JSON.parse(JSON.stringify(typed.value)))).toEqual(typed.value);
    expect(decodeTyped(null)).toEqual(NOTHING);
    expect(decodeTyped({ boxes: [{ key: 1 }, "x"], answers: { a: 3 }, review: 4, edit: {} })).toEqual(NOTHING);
    setAnswer("t", null);
    expect(typed.value.answers).toEqual({});
  });
});

describe("addresses", () => {
  it("say which review, revisions, line and thread, and come back as they were", () => {
    const known = { name: "review" as const, id: "r", place: { revision: 3, against: 2, line: 14, thread: "t" } };
    expect(addressOf(known)).toBe("/reviews/r?revision=3&against=2&line=14&thread=t");
    expect(parseAddress("/reviews/r", "?revision=3&against=2&line=14&thread=t")).toEqual(known);
    expect(parseAddress("/reviews/r", "?revision=x&line=-1")).toEqual({ name: "review", id: "r", place: NOWHERE });
    for (const path of ["/", "/runs/a", "/workspace", "/settings"]) expect(addressOf(parseAddress(path, ""))).toBe(path);
  });
  it("decide what a key means", () => {
    const press = { key: "j", code: "KeyJ", ctrlKey: false, metaKey: false, altKey: true, shiftKey: false };
    page.value = { name: "bench", run: null };
    expect(commandFor(press, false)).toBeNull();
    page.value = { name: "review", id: "r", place: NOWHERE };
    expect(commandFor(press, false)?.id).toBe("hunk.next");
    expect(commandFor({ ...press, key: "Enter", code: "Enter", altKey: false, ctrlKey: true }, true)).toBeNull();
    page.value = { name: "bench", run: null };
  });
});

describe("the edge", () => {
  it("knows a moved head from other conflicts", () => {
    const problem = (type: string, code_moved: CodeMoved | null) => ({ type, title: "", status: 409, detail: "", instance: "", request_id: "", errors: [], code_moved });
    const moved = { head: HEAD, place: null };
    expect(codeMoved(new ApiError(409, "", problem("/problems/code-moved", moved)))).toEqual(moved);
    expect(codeMoved(new ApiError(409, "", problem("/problems/review-ended", moved)))).toBeNull();
    expect(codeMoved(new ApiError(409, "", problem("/problems/code-moved", null)))).toBeNull();
    expect(codeMoved(new Error("x"))).toBeNull();
  });
  it("takes the hint that a review has changed", () => {
    expect(decodeFrame('{"type":"changed","version":7}')).toEqual({ ok: true, value: { type: "changed", version: 7 } });
  });
  it("follows only addresses of the web out of a comment", () => {
    expect(["https://a.example", "javascript:alert(1)", "data:text/html,x", "//a.example", "/runs"].map(isWeb)).toEqual([true, false, false, false, false]);
  });
});

describe("workspaces and accounts", () => {
  const quota = (known: Partial<QuotaUseInfo>): QuotaUseInfo => ({ kind: "runs_at_once", of: "workspace", used: 0, limit: 10, remaining: 10, resets_at: null, ...known });

  it("say that a quota runs out before it has", () => {
    expect([3, 8, 10, 12].map((used) => quotaLine(quota({ used })).state)).toEqual(["free", "close", "out", "out"]);
    expect(quotaLine(quota({ kind: "gpu_seconds", used: 75, limit: null }))).toMatchObject({ words: "1 min 15 s, no limit", share: null, state: "free" });
    expect(quotaLine(quota({ limit: 0 }))).toMatchObject({ state: "out", share: 1 });
  });
  it("propose a name for addresses", () => {
    expect(["Kernel team", "  Größe & Zeit!", "a".repeat(80)].map(slugFor)).toEqual(["kernel-team", "gro-e-zeit", "a".repeat(64)]);
  });
  it("tell tokens in force from those that have ended", () => {
    const token = { id: "", name: "", prefix: "", user: "", workspace: null, scopes: [], created_at: "", expires_at: "2026-06-01T00:00:00Z", revoked_at: null, last_used_at: null };
    const now = Date.parse("2026-05-01T00:00:00Z");
    expect(tokenState(token, now)).toBe("in force");
    expect(tokenState(token, now + 40 * 86_400_000)).toBe("expired");
    expect(tokenState({ ...token, revoked_at: "2026-04-01T00:00:00Z" }, now)).toBe("revoked");
  });
  it("call browsers by their names", () => {
    expect(browserName("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36")).toBe("Chrome on Linux");
    expect(browserName("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18 Safari/605.1.15")).toBe("Safari on macOS");
    expect(browserName("curl/8")).toBe("curl/8");
    expect(browserName("")).toBe("says nothing of itself");
  });
});
