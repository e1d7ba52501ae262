import { describe, expect, it } from "vitest";
import { cudaFrom } from "../src/editor/cuda";
import { longHex } from "../src/editor/themes";
import { decodeBootstrap } from "../src/protocol/bootstrap";
import { decodeEvent, decodeFrame } from "../src/protocol/decode";
import { commandFor, commands, matches } from "../src/state/commands";
import { changedLines } from "../src/state/diff";
import { decodeText, tooLarge } from "../src/state/files";
import { bytes, compact, dims, scientific, seconds } from "../src/state/format";
import { kindOf, scratchName } from "../src/state/languages";
import { inputsToml } from "../src/state/toml";
import { tidy } from "../src/state/documents";

describe("decode", () => {
  it("refuses what would break the page and says why", () => {
    expect(decodeEvent({ type: "turn_started", title: "no number" })).toMatchObject({ ok: false });
    expect(decodeEvent(null)).toMatchObject({ ok: false });
    expect(decodeFrame('{"type":"live","seq":-1}')).toMatchObject({ ok: false });
    expect(decodeFrame('{"type":"event","seq":4,"event":{"type":"what"}}')).toMatchObject({ ok: false, seq: 4 });
  });
  it("takes what the server sends", () => {
    expect(decodeFrame('{"type":"live","seq":3}')).toEqual({ ok: true, value: { type: "live", seq: 3 } });
    const delta = { type: "delta", event: { type: "text_delta", turn: 1, text: "a" } };
    expect(decodeFrame(JSON.stringify(delta))).toEqual({ ok: true, value: delta });
  });
  it("starts with sensible options when some are missing", () => {
    expect(decodeBootstrap({ run_id: "x" })).toMatchObject({ runId: "x", options: { turns_default: 8 } });
  });
});

describe("languages", () => {
  it("go by the name, then by the text", () => {
    expect(kindOf("a.py", "int main() {}")).toBe("pytorch");
    expect(kindOf("a.cu", "")).toBe("cuda");
    expect(kindOf("a.txt", "import torch\n")).toBe("pytorch");
    expect(kindOf("a.txt", "__global__ void f() {}")).toBe("cuda");
    expect(kindOf("a.txt", "void f(int n) {}")).toBe("c");
  });
  it("rename a scratch file, never the user's own", () => {
    expect(scratchName("untitled-2.c", "import torch")).toBe("untitled-2.py");
    expect(scratchName("mine.c", "import torch")).toBe("mine.c");
  });
});

describe("files", () => {
  it("must be UTF-8 text of a size that the server takes", () => {
    expect(decodeText("a.c", new Uint8Array([0xff, 0xfe, 0x41]).buffer)).toMatchObject({ ok: false });
    expect(decodeText("a.c", new Uint8Array([0x41, 0, 0x42]).buffer)).toMatchObject({ ok: false });
    expect(decodeText("a.c", new TextEncoder().encode("ä\r\nb").buffer)).toMatchObject({ ok: true, text: "ä\nb" });
    expect(tooLarge("é".repeat(600_000), 1_000_000)).toContain("1.20 MB");
    expect(tooLarge("é", 1_000_000)).toBeNull();
  });
});

describe("changedLines", () => {
  it("finds what is new, changed and moved", () => {
    expect(changedLines("a\nb\nc", "a\nB\nc")).toEqual([{ start: 2, end: 3 }]);
    expect(changedLines("a\nc", "a\nb\nc")).toEqual([{ start: 2, end: 3 }]);
    expect(changedLines("a\nb\nc", "a\nc")).toEqual([]);
    expect(changedLines("a\nb\nc\nd", "a\nx\nc\ny\nd")).toEqual([
      { start: 2, end: 3 },
      { start: 4, end: 5 },
    ]);
    expect(changedLines("same", "same")).toEqual([]);
  });
});

describe("numbers", () => {
  it("are written in one way", () => {
    expect([0, 999, 9999, 12_345, 4.2e12].map(compact)).toEqual(["0", "999", "9,999", "12.3 k", "4.20 T"]);
    expect([0, 1536, 3_145_728].map(bytes)).toEqual(["0 B", "1.50 KiB", "3.00 MiB"]);
    expect([4.14, 75, 7325].map(seconds)).toEqual(["4.1 s", "1 min 15 s", "2 h 2 min"]);
    expect(dims([256, 1, 1])).toBe("256");
    expect(dims([16, 16, 1])).toBe("16 × 16");
    expect(scientific(1.1e-7)).toBe("1.1e-7");
  });
});

describe("keys", () => {
  const press = (key: string, more: Partial<KeyboardEvent> = {}) => ({
    key,
    code: /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : key,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    shiftKey: false,
    ...more,
  });

  it("are told apart by their modifiers", () => {
    expect(matches("Mod+Enter", press("Enter", { ctrlKey: true }), false)).toBe(true);
    expect(matches("Mod+Enter", press("Enter", { metaKey: true }), true)).toBe(true);
    expect(matches("Mod+Enter", press("Enter", { ctrlKey: true }), true)).toBe(false);
    expect(matches("F8", press("F8", { shiftKey: true }), false)).toBe(false);
    expect(matches("Alt+D", press("∂", { altKey: true, code: "KeyD" }), true)).toBe(true);
  });
  it("of one letter do nothing while somebody types", () => {
    expect(commandFor(press("?", { shiftKey: true }), true)).toBeNull();
    expect(commandFor(press("?", { shiftKey: true }), false)?.id).toBe("keys");
  });
  it("are each given to one command", () => {
    const keys = commands.flatMap((it) => it.keys ?? []);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(commands.map((it) => it.id)).size).toBe(commands.length);
  });
});

describe("inputs", () => {
  it("keep only what was said, and are written as the command line reads them", () => {
    const inputs = tidy({
      sizes: { n: 1000 },
      scalars: {},
      arrays: { x: { extent: "n * m", access: null, low: null, high: null, distribution: null } },
      tolerance: 1e-5,
      reproducible: false,
    });
    expect(inputs).toEqual({ sizes: { n: 1000 }, arrays: { x: { extent: "n * m" } }, tolerance: 1e-5 });
    expect(inputsToml(inputs)).toBe('tolerance = 0.00001\n\n[sizes]\nn = 1000\n\n[arrays.x]\nextent = "n * m"\n');
  });
});

describe("CUDA", () => {
  it("is C++ with launches, qualifiers and the names the compiler gives", () => {
    const { language } = cudaFrom({ conf: {}, language: { keywords: ["for"], tokenizer: { root: [["raw"], ["rest"]] } } });
    expect(language.keywords).toContain("__global__");
    expect(language.keywords).toContain("for");
    const { root } = language.tokenizer;
    expect(root[0]).toEqual(["raw"]);
    expect(root.at(-1)).toEqual(["rest"]);
    expect(root).toHaveLength(5);
  });
});

it("colours are written out for Monaco", () => {
  expect(["#fff", "#123456", "transparent", "#abc8"].map(longHex)).toEqual(["#ffffff", "#123456", "#00000000", "#aabbcc88"]);
});
