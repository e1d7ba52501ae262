import { describe, expect, it } from "vitest";
import type { Evaluation, RunEvent, TaskSpec } from "../src/generated/events";
import { applyEdits, EMPTY_RUN, fold, splitLines, type RunView, type Timestamped } from "../src/state/run";
import { scoreDelta, spending, stageText, turnScore, turnSign } from "../src/state/selectors";

const task: TaskSpec = {
  language: "c",
  name: "scale",
  source: "void scale(int n, float *x) {}",
  prototype: 'extern "C" void launch(int n, float *x)',
  parameters: [],
  sizes: { n: 8 },
  inputs: { sizes: {}, scalars: {}, arrays: {}, tolerance: null, reproducible: false },
  notes: [],
  tolerance_rule: "",
  graph: null,
};

const STAGE = { type: "stage", turn: 1, stage: "", detail: "", done: null, of: null, device: "", queue_position: null } as const;

function evaluation(verdict: Evaluation["verdict"], score: number | null): Evaluation {
  return {
    verdict,
    fault: null,
    message: "",
    backend: "emulator",
    target: "sm_90",
    compile: null,
    plan: null,
    verification: null,
    metrics:
      score === null
        ? null
        : { structural_score: score, families: {}, measured_by: "emulator", kernels: [], notes: [], sizes: {} },
    timing: null,
    reward: null,
    seconds: 1,
    stages: {},
    jailed: true,
  };
}

function numbered(events: RunEvent[], from = 1): Timestamped[] {
  return events.map((event, index) => ({ seq: from + index, at: index * 10, event }));
}

const started: RunEvent = { type: "run_started", task, policy: "builtin", backend: "emulator", target: "sm_90", turn_limit: 8, strategy: "single" };

function answer(text: string): RunEvent {
  return {
    ...{ type: "answered", turn: 1, request: 1, model: "m", text, plan: "", lesson: "", repairs: [], skills: [] },
    ...{ finish_reason: "stop", prompt_tokens: 9, completion_tokens: 3, estimated: false, cost: null },
    ...{ seconds: 1, first_token_seconds: 0.1, attempts: 1 },
  };
}

function turnEvents(turn: number, base: number | null, score: number): RunEvent[] {
  return [
    { type: "turn_started", turn, title: `try ${turn}`, base_turn: base, branch: 1, also_from: null },
    { type: "action", turn, action: "submit", source: `// ${turn}\n`, reason: "" },
    { type: "turn_ended", turn, evaluation: evaluation("passed", score), best_turn: turn, seconds: 1, same_as: null },
  ];
}

describe("fold", () => {
  it("never changes the view it is given", () => {
    const first = fold(EMPTY_RUN, numbered([started, ...turnEvents(1, null, 60)]));
    const frozen = JSON.stringify(first);
    fold(first, numbered(turnEvents(2, 1, 80), first.lastSeq + 1));
    expect(JSON.stringify(first)).toBe(frozen);
    expect(JSON.stringify(EMPTY_RUN.turns)).toBe("[]");
  });

  it("gives the same view for one event at a time as for all at once", () => {
    const events = numbered([started, ...turnEvents(1, null, 60), ...turnEvents(2, 1, 80)]);
    const single = events.reduce<RunView>((view, item) => fold(view, [item]), EMPTY_RUN);
    expect(single).toEqual(fold(EMPTY_RUN, events));
  });

  it("drops what it already has, and keeps the numbers", () => {
    const events = numbered([started, ...turnEvents(1, null, 60)]);
    const once = fold(EMPTY_RUN, events);
    expect(fold(once, events)).toBe(once);
    expect(once.lastSeq).toBe(4);
    expect(once.events).toHaveLength(4);
  });

  it("keeps what a model did in a turn, and what it took", () => {
    const view = fold(EMPTY_RUN, [
      ...numbered([
        started,
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        { ...STAGE, stage: "model_wait", detail: "HTTP 503; attempt 2 of 5 in 1.0 s", done: 2, of: 5 },
        { type: "spent", turn: 1, prompt_tokens: 9, completion_tokens: 3, estimated: false, cost: null },
        answer("Tile it."),
        { type: "tool", turn: 1, tool: "verify", arguments: "{}", observation: "passed", ok: true, seconds: 1 },
      ]),
    ]);
    expect(view.turns[0]?.steps.map((it) => it.kind)).toEqual(["wait", "answer", "tool"]);
    expect(spending(view, [])).toEqual({ prompt: 9, completion: 3, cost: null, estimated: false });
    expect(spending(view, [1])).toBeNull(); // told again, paid for by the run before
    expect(view.stage && stageText(view.stage)).toBe("waiting for the model, attempt 2 of 5");
  });

  it("takes a run that ends before it has begun", () => {
    const problem = { kind: "parse_error", message: "expected ;", hint: "", file: "a.c", line: 3, column: 7, choices: [] };
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "run_ended", reason: "bad_input", message: "expected ;", best_turn: null, verdict: null, problem, seconds: 0.1 },
      ]),
    );
    expect(view.ended?.problem?.line).toBe(3);
    expect(view.turns).toEqual([]);
  });

  it("joins a log's chunks of one stream and keeps streams apart", () => {
    const log = (stream: "nvcc" | "judge", text: string): RunEvent => ({ type: "log", turn: 1, stream, text });
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        log("nvcc", "one "),
        log("nvcc", "two\n"),
        log("judge", "three\n"),
      ]),
    );
    expect(view.turns[0]?.logs).toEqual([
      { stream: "nvcc", text: "one two\n" },
      { stream: "judge", text: "three\n" },
    ]);
  });

  it("knows since when a stage lasts, whatever its progress says", () => {
    const stage = (done: number): RunEvent => ({ ...STAGE, stage: "replay", done, of: 5 });
    const view = fold(EMPTY_RUN, numbered([stage(0), stage(1), stage(2)]));
    expect(view.stage).toMatchObject({ since: 0, done: 2, of: 5 });
  });

  it("says the place in the GPU queue, then the card", () => {
    const waits: RunEvent = { ...STAGE, stage: "gpu", detail: "waiting for a GPU: 2nd", queue_position: 2 };
    const works: RunEvent = { ...STAGE, stage: "replay", done: 1, of: 5, device: "NVIDIA H200 on node7" };
    const said = [waits, works].map((event) => fold(EMPTY_RUN, numbered([event])).stage);
    expect(said.map((stage) => stage && stageText(stage))).toEqual(["waiting for a GPU: 2nd", "replaying 1 of 5"]);
    expect(said[1]?.device).toBe("NVIDIA H200 on node7");
  });
});

describe("edits", () => {
  const edited = (turn: number, base: number, version: number, start: number, end: number, text: string): RunEvent => ({
    type: "edited",
    turn,
    file: "kernel.cu",
    base_version: base,
    version,
    edits: [{ start_line: start, end_line: end, text }],
  });

  it("build the candidate piece by piece and say which lines are new", () => {
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        edited(1, 0, 1, 1, 1, "a\nb\n"),
        edited(1, 1, 2, 3, 3, "c\n"),
      ]),
    );
    expect(view.turns[0]).toMatchObject({ text: "a\nb\nc\n", version: 2, writing: true, changed: [{ start: 1, end: 4 }] });
  });

  it("go on from the version before in the next turn", () => {
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        edited(1, 0, 1, 1, 1, "a\nb\nc\n"),
        { type: "turn_started", turn: 2, title: "b", base_turn: 1, branch: 1, also_from: null },
        edited(2, 1, 2, 2, 3, "B\n"),
      ]),
    );
    expect(view.turns[1]).toMatchObject({ text: "a\nB\nc\n", changed: [{ start: 2, end: 3 }] });
    expect(view.turns[0]?.text).toBe("a\nb\nc\n");
  });

  it("that do not fit are said to be out of step, until the whole candidate comes", () => {
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        edited(1, 7, 8, 1, 1, "a\n"),
      ]),
    );
    expect(view.turns[0]).toMatchObject({ outOfStep: true, text: "" });
    const whole = fold(view, [
      { seq: 3, at: 1, event: { type: "action", turn: 1, action: "submit", source: "whole\n", reason: "" } },
    ]);
    expect(whole.turns[0]).toMatchObject({ outOfStep: false, text: "whole\n", writing: false });
  });

  it("apply in descending order of line, and ranges below move with them", () => {
    const result = applyEdits("1\n2\n3\n4\n", [
      { start_line: 4, end_line: 5, text: "four\n" },
      { start_line: 1, end_line: 2, text: "one\nand a half\n" },
    ]);
    expect(result).toEqual({
      text: "one\nand a half\n2\n3\nfour\n",
      changed: [
        { start: 1, end: 3 },
        { start: 5, end: 6 },
      ],
    });
    expect(applyEdits("1\n", [{ start_line: 5, end_line: 6, text: "" }])).toBeNull();
  });

  it("count lines as Python does", () => {
    expect(splitLines("a\nb")).toEqual(["a\n", "b"]);
    expect(splitLines("")).toEqual([]);
    expect(splitLines("\n\n")).toEqual(["\n", "\n"]);
  });
});

describe("scores", () => {
  it("are compared with the turn that this one was made from", () => {
    const view = fold(
      EMPTY_RUN,
      numbered([started, ...turnEvents(1, null, 60), ...turnEvents(2, 1, 50), ...turnEvents(3, 1, 80)]),
    );
    const [, second, third] = view.turns;
    expect(second && scoreDelta(view, second)).toEqual({ delta: -10, against: 1 });
    expect(third && scoreDelta(view, third)).toEqual({ delta: 20, against: 1 });
  });

  it("are not given to a candidate that failed", () => {
    const view = fold(
      EMPTY_RUN,
      numbered([
        { type: "turn_started", turn: 1, title: "a", base_turn: null, branch: 1, also_from: null },
        { type: "turn_ended", turn: 1, evaluation: evaluation("wrong_result", 90), best_turn: null, seconds: 1, same_as: null },
      ]),
    );
    const turn = view.turns[0];
    expect(turn && turnScore(turn)).toBeNull();
    expect(turn && turnSign(turn).word).toBe("wrong result");
  });
});
