import { beforeEach, describe, expect, it } from "vitest";
import type { RunEvent, TextDelta } from "../src/generated/events";
import { addDeltas, GAP, resetStream, settle, stream } from "../src/state/stream";

function piece(text: string, start: number, request = 1, turn = 1): TextDelta {
  return { type: "text_delta", turn, text, thought: false, request, start };
}

function shown(): string | null {
  return stream.value?.chunks.map((it) => it.text).join("") ?? null;
}

function answered(turn: number, request: number): RunEvent {
  return {
    ...{ type: "answered", turn, request, model: "m", text: "", plan: "", lesson: "", repairs: [], skills: [] },
    ...{ finish_reason: "stop", prompt_tokens: 9, completion_tokens: 3, estimated: false, cost: null },
    ...{ seconds: 1, first_token_seconds: 0.1, attempts: 1 },
  };
}

describe("the text of a model", () => {
  beforeEach(resetStream);

  it("grows piece by piece and is gone when the answer is whole", () => {
    addDeltas([piece("Tile ", 0), piece("it.", 5)]);
    expect(shown()).toBe("Tile it.");
    settle(answered(1, 1));
    expect(shown()).toBeNull();
  });

  it("drops what comes after its answer", () => {
    settle(answered(1, 1));
    addDeltas([piece("late", 40)]);
    expect(shown()).toBeNull();
    addDeltas([piece("next", 0, 2)]);
    expect(shown()).toBe("next");
  });

  it("begins anew with each attempt", () => {
    addDeltas([piece("broken of", 0)]);
    settle({ type: "stage", turn: 1, stage: "model_wait", detail: "", done: 2, of: 5, device: "", queue_position: null });
    expect(shown()).toBeNull();
    addDeltas([piece("f", 9), piece("whole", 0, 2)]);
    expect(shown()).toBe("whole");
  });

  it("says where pieces were missed, and shows none twice", () => {
    addDeltas([piece("after the lid was opened", 300)]);
    expect(shown()).toBe(`${GAP}after the lid was opened`);
    addDeltas([piece("lid", 310)]);
    expect(shown()).toBe(`${GAP}after the lid was opened`);
  });

  it("ends with its turn and its run", () => {
    addDeltas([piece("a", 0)]);
    settle({ type: "run_ended", reason: "cancelled", message: "", best_turn: null, verdict: null, problem: null, seconds: 1 });
    addDeltas([piece("b", 1)]);
    expect(shown()).toBeNull();
  });
});
