import { describe, expect, it } from "vitest";
import { ResumingSocket, type Connection, type World } from "../src/protocol/socket";

/** The server's end of one connection. */
class Line {
  readyState = 0;
  sent: { type: string; after_seq?: number }[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((close: { code: number }) => void) | null = null;
  send(text: string): void {
    this.sent.push(JSON.parse(text) as { type: string });
  }
  close(): void {
    this.readyState = 3;
  }
  opened(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  say(frame: unknown): void {
    this.onmessage?.({ data: typeof frame === "string" ? frame : JSON.stringify(frame) });
  }
  event(seq: number): void {
    this.say({ type: "event", seq, at: "2026-01-01T00:00:00Z", event: { type: "reflected", turn: 1, text: String(seq) } });
  }
  lost(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

function bench(afterSeq = 0) {
  const lines: Line[] = [];
  const timers = new Map<number, { callback: () => void; delay: number }>();
  let id = 0;
  const world: World = {
    open: () => {
      const line = new Line();
      lines.push(line);
      return line as unknown as WebSocket;
    },
    random: () => 1,
    now: () => 1000,
    setTimer: (callback, delay) => {
      timers.set((id += 1), { callback, delay });
      return id;
    },
    clearTimer: (timer) => void timers.delete(timer),
  };
  const got: number[] = [];
  const states: Connection[] = [];
  const unreadable: string[] = [];
  let resets = 0;
  const socket = new ResumingSocket(
    "/ws/runs/1",
    afterSeq,
    {
      onEvent: (event) => got.push(event.seq),
      onConnection: (state) => states.push(state),
      onUnreadable: (why) => unreadable.push(why),
      onReset: () => (resets += 1),
    },
    world,
  );
  const line = (index = lines.length - 1): Line => {
    const found = lines[index];
    if (!found) throw new Error("no such connection");
    return found;
  };
  const fire = () => {
    const [timer, { callback }] = [...timers].at(-1) ?? [0, { callback: () => undefined }];
    timers.delete(timer);
    callback();
  };
  return { socket, line, lines, got, states, unreadable, fire, timers, resets: () => resets };
}

describe("ResumingSocket", () => {
  it("says what it has and becomes live when caught up", () => {
    const { line, got, states } = bench(3);
    line().opened();
    expect(line().sent).toEqual([{ type: "hello", after_seq: 3 }]);
    line().event(4);
    line().say({ type: "live", seq: 4 });
    expect(got).toEqual([4]);
    expect(states.at(-1)).toEqual({ state: "live" });
  });

  it("drops duplicates", () => {
    const { line, got } = bench();
    line().opened();
    [1, 2, 2, 1, 3].forEach((seq) => line().event(seq));
    expect(got).toEqual([1, 2, 3]);
  });

  it("asks for a gap once and takes nothing out of order", () => {
    const { line, got } = bench();
    line().opened();
    line().event(1);
    line().event(4);
    line().event(5);
    expect(line().sent).toEqual([
      { type: "hello", after_seq: 0 },
      { type: "hello", after_seq: 1 },
    ]);
    [2, 3, 4, 5].forEach((seq) => line().event(seq));
    expect(got).toEqual([1, 2, 3, 4, 5]);
  });

  it("asks again when it is told to be live but is not, and reconnects when that does not help", () => {
    const { line, states, fire, lines } = bench();
    line().opened();
    line().event(1);
    line().say({ type: "live", seq: 3 });
    expect(line().sent.at(-1)).toEqual({ type: "hello", after_seq: 1 });
    line().say({ type: "live", seq: 3 });
    expect(states.at(-1)?.state).toBe("waiting");
    fire();
    expect(lines).toHaveLength(2);
  });

  it("resumes after what it has when the connection is lost, waiting longer each time", () => {
    const { line, got, states, fire } = bench();
    line().opened();
    line().event(1);
    line().lost();
    expect(states.at(-1)).toEqual({ state: "waiting", retryAt: 1500 });
    fire();
    line().lost();
    expect(states.at(-1)).toEqual({ state: "waiting", retryAt: 2000 });
    fire();
    line().opened();
    expect(line().sent).toEqual([{ type: "hello", after_seq: 1 }]);
    line().event(2);
    expect(got).toEqual([1, 2]);
  });

  it.each([
    [4401, "signed_out"],
    [4404, "not_found"],
  ])("does not come back after %i", (code, why) => {
    const { line, states, timers } = bench();
    line().opened();
    line().lost(code);
    expect(states.at(-1)).toEqual({ state: "closed", why });
    expect(timers.size).toBe(0);
  });

  it("starts over when the server says so", () => {
    const { line, got, resets } = bench(9);
    line().opened();
    line().say({ type: "reset" });
    expect(resets()).toBe(1);
    expect(line().sent.at(-1)).toEqual({ type: "hello", after_seq: 0 });
    line().event(1);
    expect(got).toEqual([1]);
  });

  it("answers pings", () => {
    const { line } = bench();
    line().opened();
    line().say({ type: "ping" });
    expect(line().sent.at(-1)).toEqual({ type: "pong" });
  });

  it("goes on after an event that it does not know", () => {
    const { line, got, unreadable } = bench();
    line().opened();
    line().say("not json");
    line().say({ type: "event", seq: 1, at: "", event: { type: "from_the_future" } });
    line().event(2);
    expect(unreadable).toHaveLength(2);
    expect(got).toEqual([2]);
  });

  it("takes a server that says nothing for gone", () => {
    const { line, states, fire } = bench();
    line().opened();
    fire();
    expect(states.at(-1)?.state).toBe("waiting");
  });
});
