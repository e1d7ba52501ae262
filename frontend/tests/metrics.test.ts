import { describe, expect, it } from "vitest";
import type { KernelMetrics, LineMetrics, Metrics } from "../src/generated/events";
import { access, familyNotes, lineCosts, mergeLines, scaleStep } from "../src/state/metrics";

function line(known: Partial<LineMetrics>): LineMetrics {
  return {
    line: 1,
    instructions: 0,
    active_threads_per_warp: 32,
    global_load_requests: 0,
    global_load_sectors: 0,
    global_load_bytes: 0,
    global_store_requests: 0,
    global_store_sectors: 0,
    global_store_bytes: 0,
    shared_load_requests: 0,
    shared_load_bank_conflicts: 0,
    shared_store_requests: 0,
    shared_store_bank_conflicts: 0,
    divergent_branches: 0,
    branches: 0,
    barriers: 0,
    barriers_executed: 0,
    useless_barriers: 0,
    atomics: 0,
    atomic_lanes_per_address: null,
    local_bytes: 0,
    flop: 0,
    ...known,
  };
}

function metrics(...kernels: LineMetrics[][]): Metrics {
  return {
    structural_score: 50,
    families: { coalescing: 0.1, occupancy: 1 },
    measured_by: "emulator",
    kernels: kernels.map((lines) => ({ lines }) as KernelMetrics),
    notes: ["Line 12 loads 32 sectors per request.", "An SM is full.", "No shared memory is accessed."],
    sizes: {},
  };
}

describe("access", () => {
  it("calls a strided load waste", () => {
    expect(access(10, 320, 1280)).toEqual({ perRequest: 32, ideal: 4, waste: 0.875 });
  });
  it("calls a vector load and a broadcast what they are: as few sectors as their bytes need", () => {
    expect(access(10, 160, 5120)?.waste).toBe(0);
    expect(access(10, 10, 40)?.waste).toBe(0);
  });
  it("assumes 4-byte elements where the useful bytes are not known", () => {
    expect(access(10, 320, 0)?.ideal).toBe(4);
    expect(access(10, 20, 0)?.waste).toBe(0);
  });
});

describe("mergeLines", () => {
  it("adds counts and weights averages by what they are averages over", () => {
    const few = line({ instructions: 100, active_threads_per_warp: 32, atomics: 1, atomic_lanes_per_address: 32 });
    const many = line({ instructions: 300, active_threads_per_warp: 16, atomics: 3, atomic_lanes_per_address: 8 });
    const merged = mergeLines([[few], [many]].map((lines) => ({ lines }) as KernelMetrics)).get(1);
    expect(merged).toMatchObject({
      line: 1,
      instructions: 400,
      active_threads_per_warp: 20,
      atomics: 4,
      atomic_lanes_per_address: 14,
    });
  });
  it("knows no average over nothing", () => {
    const merged = mergeLines([[line({})], [line({})]].map((lines) => ({ lines }) as KernelMetrics)).get(1);
    expect(merged).toMatchObject({ active_threads_per_warp: 0, atomic_lanes_per_address: null });
  });
});

describe("lineCosts", () => {
  it("joins what several launches did on one line", () => {
    const row = line({ line: 7, instructions: 100, global_load_requests: 10, global_load_sectors: 40, global_load_bytes: 1280 });
    const costs = lineCosts(metrics([row], [{ ...row, global_load_sectors: 320 }]), "sectors");
    expect(costs.get(7)).toMatchObject({ label: "18.0 sect", share: 1 });
  });

  it("picks the most wasteful thing a line does", () => {
    const row = line({
      line: 3,
      instructions: 10,
      global_load_requests: 10,
      global_load_sectors: 40,
      global_load_bytes: 1280,
      shared_load_requests: 10,
      shared_load_bank_conflicts: 310,
    });
    expect(lineCosts(metrics([row]), "telling").get(3)?.label).toBe("310 confl");
  });

  it("says it in words, with the numbers", () => {
    const row = line({ line: 3, instructions: 10, global_load_requests: 8192, global_load_sectors: 262_144, global_load_bytes: 1_048_576 });
    expect(lineCosts(metrics([row]), "telling").get(3)?.words[0]).toBe(
      "Global loads: 32.0 sectors per request (4.0 would do), 8,192 requests.",
    );
  });
});

it("gives each family its note and keeps the rest", () => {
  const { byFamily, others } = familyNotes(metrics());
  expect(byFamily.get("coalescing")).toBe("Line 12 loads 32 sectors per request.");
  expect(others).toEqual(["No shared memory is accessed."]);
});

it("has seven steps from nothing to all", () => {
  expect([0, 0.5, 1, 7, -1].map(scaleStep)).toEqual([0, 3, 6, 6, 0]);
});
