/** Runs as they really happened (`kernelwright translate --events`), through the whole way that they take here. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { decodeEvent } from "../src/protocol/decode";
import { lineCosts } from "../src/state/metrics";
import { EMPTY_RUN, fold, type RunView, type Timestamped } from "../src/state/run";
import { turnScore } from "../src/state/selectors";

const folder = fileURLToPath(new URL("../../tests/fixtures/trajectories/", import.meta.url));
const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));

function read(name: string): Timestamped[] {
  const lines = readFileSync(folder + name, "utf8").split("\n").filter(Boolean);
  return lines.map((line, index) => {
    const event = decodeEvent(JSON.parse(line));
    if (!event.ok) throw new Error(`${name}:${index + 1}: ${event.why}`);
    return { seq: index + 1, at: index * 100, event: event.value };
  });
}

it("there are some", () => expect(names.length).toBeGreaterThan(0));

describe.each(names)("%s", (name) => {
  const events = read(name);

  it("is written edit by edit to exactly what is handed to the judge", () => {
    let view: RunView = EMPTY_RUN;
    for (const item of events) {
      if (item.event.type === "action" && item.event.action === "submit") {
        const turn = view.turns.at(-1);
        expect(turn?.outOfStep).toBe(false);
        expect(turn?.text).toBe(item.event.source);
        expect(turn?.writing).toBe(true);
      }
      view = fold(view, [item]);
    }
    expect(view.turns.every((turn) => !turn.writing)).toBe(true);
  });

  it("ends once, with every turn judged and the best one known", () => {
    const view = fold(EMPTY_RUN, events);
    expect(events.filter((it) => it.event.type === "run_ended")).toHaveLength(1);
    expect(view.ended?.best_turn).toBe(view.bestTurn);
    expect(view.turns.every((turn) => turn.evaluation !== null || turn.ending !== null)).toBe(true);
    const scores = view.turns.map((turn) => turnScore(turn) ?? -1);
    expect(scores[(view.bestTurn ?? 0) - 1]).toBe(Math.max(...scores));
  });

  it("is the same however it is cut into pieces", () => {
    const whole = fold(EMPTY_RUN, events);
    for (const size of [1, 7, 50]) {
      let view: RunView = EMPTY_RUN;
      for (let at = 0; at < events.length; at += size) view = fold(view, events.slice(at, at + size));
      expect(view).toEqual(whole);
    }
  });

  it("can be resumed from any event, with some sent twice", () => {
    const whole = fold(EMPTY_RUN, events);
    for (const cut of [1, 5, Math.floor(events.length / 2)]) {
      const before = fold(EMPTY_RUN, events.slice(0, cut));
      expect(fold(before, events.slice(Math.max(0, cut - 3)))).toEqual(whole);
    }
  });

  it("has a cost for lines that are in the candidate", () => {
    for (const turn of fold(EMPTY_RUN, events).turns) {
      const lines = turn.text.split("\n").length;
      const costs = [...lineCosts(turn.metrics, "telling").values()];
      expect(costs.every((it) => it.line <= lines && it.waste >= 0 && it.waste <= 1 && it.words.length > 0)).toBe(true);
    }
  });
});
