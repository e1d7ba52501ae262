/**
 * A websocket that loses nothing: it says which event it has, drops duplicates, asks again when there is a gap,
 * and comes back by itself after a closed lid, a dead network or a restarted server.
 */
import type { ClientFrame, RunSummary, StoredEvent, TextDelta } from "../generated/events";
import { decodeFrame } from "./decode";

export type Connection =
  | { state: "connecting" }
  | { state: "replaying" } // connected, not yet up to date
  | { state: "live" }
  | { state: "waiting"; retryAt: number } // milliseconds since the epoch
  | { state: "closed"; why: "signed_out" | "not_found" | "done" };

export interface SocketHandlers {
  onEvent?: (event: StoredEvent) => void;
  onDelta?: (event: TextDelta) => void;
  onRun?: (run: RunSummary) => void;
  onReset?: () => void;
  /** Of `/ws/reviews/…`: something has changed, ask anew. */
  onChanged?: (version: number) => void;
  onConnection: (connection: Connection) => void;
  /** A frame that could not be read; shown in the Events tab, never fatal. */
  onUnreadable?: (why: string) => void;
}

/** What the socket needs of the world, so that tests can be the world. */
export interface World {
  open: (path: string) => WebSocket;
  random: () => number;
  now: () => number;
  setTimer: (callback: () => void, milliseconds: number) => number;
  clearTimer: (id: number) => void;
}

const browser: World = {
  open: (path) => new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`),
  random: () => Math.random(),
  now: () => Date.now(),
  setTimer: (callback, milliseconds) => window.setTimeout(callback, milliseconds),
  clearTimer: (id) => window.clearTimeout(id),
};

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
/** A server that says nothing for this long (it pings every 20 s) is taken for gone. */
const SILENCE = 45_000;

const FATAL: Record<number, "signed_out" | "not_found"> = { 4401: "signed_out", 4403: "signed_out", 4404: "not_found" };

export class ResumingSocket {
  private socket: WebSocket | null = null;
  private retryTimer: number | null = null;
  private silenceTimer: number | null = null;
  private attempts = 0;
  private stopped = false;
  /** A gap was seen and asked for; until it is filled, later events are dropped, since they come again. */
  private refilling = false;
  /** Where the last request for a gap started from: asking twice from one place means it cannot be filled. */
  private refilledFrom = -1;

  /** `afterSeq`: the last event already known. For `/ws/runs` and `/ws/reviews`, where nothing is numbered, pass null. */
  constructor(
    private readonly path: string,
    private afterSeq: number | null,
    private readonly handlers: SocketHandlers,
    private readonly world: World = browser,
  ) {
    this.connect();
    if (typeof window !== "undefined") {
      window.addEventListener("online", this.wake);
      document.addEventListener("visibilitychange", this.wake);
    }
  }

  /** Try now instead of at the end of the wait. */
  readonly wake = (): void => {
    if (this.stopped || this.socket !== null) return;
    if (typeof document !== "undefined" && document.visibilityState === "hidden") return;
    this.cancel("retryTimer");
    this.connect();
  };

  close(why: "done" | "signed_out" | "not_found" = "done"): void {
    if (this.stopped) return;
    this.stopped = true;
    this.cancel("retryTimer");
    this.cancel("silenceTimer");
    if (typeof window !== "undefined") {
      window.removeEventListener("online", this.wake);
      document.removeEventListener("visibilitychange", this.wake);
    }
    this.socket?.close(1000);
    this.socket = null;
    this.handlers.onConnection({ state: "closed", why });
  }

  private connect(): void {
    this.handlers.onConnection({ state: "connecting" });
    const socket = this.world.open(this.path);
    this.socket = socket;
    socket.onopen = () => {
      this.refilling = false;
      if (this.afterSeq === null) this.becomeLive();
      else {
        this.handlers.onConnection({ state: "replaying" });
        this.send({ type: "hello", after_seq: this.afterSeq });
      }
      this.listenForSilence();
    };
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      this.listenForSilence();
      this.receive(String(message.data));
    };
    socket.onclose = (close) => {
      if (socket === this.socket) this.lost(close.code);
    };
  }

  private receive(text: string): void {
    const frame = decodeFrame(text);
    if (!frame.ok) {
      this.handlers.onUnreadable?.(frame.why);
      if (frame.seq !== undefined && frame.seq === (this.afterSeq ?? 0) + 1) this.afterSeq = frame.seq;
      return;
    }
    switch (frame.value.type) {
      case "event":
        this.take(frame.value);
        break;
      case "delta":
        this.handlers.onDelta?.(frame.value.event);
        break;
      case "live":
        // The server believes we have everything up to here. Where we do not, something was lost on the way.
        if (this.afterSeq !== null && frame.value.seq > this.afterSeq) this.refill();
        else this.becomeLive();
        break;
      case "reset":
        this.afterSeq = 0;
        this.handlers.onReset?.();
        this.send({ type: "hello", after_seq: 0 });
        break;
      case "run":
        this.handlers.onRun?.(frame.value.run);
        break;
      case "changed":
        this.handlers.onChanged?.(frame.value.version);
        break;
      case "ping":
        this.send({ type: "pong" });
        break;
      case "pong":
        break;
    }
  }

  private take(frame: StoredEvent): void {
    const known = this.afterSeq ?? 0;
    if (frame.seq <= known) return;
    if (frame.seq > known + 1) {
      if (!this.refilling) this.refill();
      return;
    }
    this.refilling = false;
    this.afterSeq = frame.seq;
    this.handlers.onEvent?.({ seq: frame.seq, at: frame.at, event: frame.event });
  }

  private refill(): void {
    if (this.refilledFrom === this.afterSeq) {
      this.drop();
      return;
    }
    this.refilling = true;
    this.refilledFrom = this.afterSeq ?? 0;
    this.handlers.onConnection({ state: "replaying" });
    this.send({ type: "hello", after_seq: this.afterSeq ?? 0 });
  }

  private becomeLive(): void {
    this.attempts = 0;
    this.refilledFrom = -1;
    this.handlers.onConnection({ state: "live" });
  }

  private lost(code: number): void {
    this.socket = null;
    this.cancel("silenceTimer");
    if (this.stopped) return;
    const fatal = FATAL[code];
    if (fatal) {
      this.close(fatal);
      return;
    }
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.attempts) * (0.5 + this.world.random() / 2);
    this.attempts += 1;
    this.handlers.onConnection({ state: "waiting", retryAt: this.world.now() + delay });
    this.retryTimer = this.world.setTimer(() => {
      this.retryTimer = null;
      this.connect();
    }, delay);
  }

  private listenForSilence(): void {
    this.cancel("silenceTimer");
    this.silenceTimer = this.world.setTimer(() => this.drop(), SILENCE);
  }

  /** Give this connection up and come back after the usual wait. */
  private drop(): void {
    const socket = this.socket;
    this.lost(1006);
    socket?.close();
  }

  private cancel(timer: "retryTimer" | "silenceTimer"): void {
    const id = this[timer];
    if (id !== null) this.world.clearTimer(id);
    this[timer] = null;
  }

  private send(frame: ClientFrame): void {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(frame));
  }
}
