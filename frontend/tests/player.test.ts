import { describe, expect, it } from "vitest";
import type { Recording } from "../src/generated/events";
import { Player } from "../src/state/player";
import type { RunView } from "../src/state/run";

const recording: Recording = {
  id: "r",
  title: "A run",
  label: "Recorded",
  events: [
    { seq: 1, at: 0, event: { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null } },
    { seq: 2, at: 1, event: { type: "reflected", turn: 1, text: "one" } },
    { seq: 3, at: 2, event: { type: "turn_started", turn: 2, title: "b", base_turn: 1, branch: 1, also_from: null } },
    {
      seq: 4,
      at: 3,
      event: { type: "run_ended", reason: "finished", message: "", best_turn: null, verdict: null, problem: null, seconds: 3 },
    },
  ],
};

function bench() {
  let now = 0;
  let next: (() => void) | null = null;
  const views: RunView[] = [];
  const player = new Player(recording, (view) => views.push(view), {
    now: () => now,
    soon: (callback) => {
      next = callback;
      return () => (next = null);
    },
  });
  const pass = (seconds: number) => {
    for (let left = seconds; left > 1e-9; left -= 0.1) {
      now += 100;
      next?.();
    }
  };
  return { player, views, pass, view: () => views.at(-1) };
}

describe("Player", () => {
  it("plays events at their own times, then stops", () => {
    const { player, pass, view } = bench();
    player.play();
    pass(0.5);
    expect(view()?.turns).toHaveLength(1);
    pass(1.7);
    expect(view()?.turns).toHaveLength(2);
    pass(1);
    expect(view()?.ended).not.toBeNull();
    expect(player.state.value).toMatchObject({ playing: false, position: 3, duration: 3 });
  });

  it("pauses, and plays faster", () => {
    const { player, pass, view } = bench();
    player.play();
    pass(0.5);
    player.pause();
    pass(5);
    expect(player.state.value.position).toBeCloseTo(0.5);
    player.setSpeed(4);
    player.play();
    pass(0.5);
    expect(view()?.turns).toHaveLength(2);
  });

  it("skips by turns and goes back", () => {
    const { player, view } = bench();
    player.skipTurn();
    expect(view()?.turns).toHaveLength(2);
    player.skipTurn();
    expect(view()?.ended).not.toBeNull();
    player.seek(0.5);
    expect(view()).toMatchObject({ lastSeq: 1, ended: null });
  });

  it("does not play at once what a hidden tab has missed", () => {
    const { player, view } = bench();
    player.play();
    expect(player.state.value.turns).toEqual([
      { turn: 1, at: 0 },
      { turn: 2, at: 2 },
    ]);
    expect(view()?.turns ?? []).toHaveLength(0);
  });
});
