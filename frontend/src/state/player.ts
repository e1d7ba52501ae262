/** A recorded run, played back with its own timing through the same fold as a live one. */
import { signal } from "@preact/signals";
import type { Recording } from "../generated/events";
import { EMPTY_RUN, fold, type RunView, type Timestamped } from "./run";

export interface Playback {
  title: string;
  label: string;
  playing: boolean;
  speed: number;
  /** Seconds into the recording. */
  position: number;
  duration: number;
  /** Where turns begin, for the marks on the scale. */
  turns: readonly { turn: number; at: number }[];
}

export interface Clock {
  now: () => number;
  /** Calls back once, soon (an animation frame); returns what cancels it. */
  soon: (callback: () => void) => () => void;
}

const browserClock: Clock = {
  now: () => performance.now(),
  soon: (callback) => {
    const id = requestAnimationFrame(callback);
    return () => cancelAnimationFrame(id);
  },
};

export const SPEEDS = [1, 2, 4, 8] as const;

export class Player {
  readonly state;
  private readonly items: Timestamped[];
  private view: RunView = EMPTY_RUN;
  private next = 0;
  private cancel: (() => void) | null = null;
  private last = 0;

  constructor(
    recording: Recording,
    private readonly show: (view: RunView) => void,
    private readonly clock: Clock = browserClock,
  ) {
    this.items = recording.events
      .filter((it) => it.event.type !== "text_delta")
      .map((it, index) => ({ seq: index + 1, at: it.at * 1000, event: it.event }));
    this.state = signal<Playback>({
      title: recording.title,
      label: recording.label,
      playing: false,
      speed: 1,
      position: 0,
      duration: (this.items.at(-1)?.at ?? 0) / 1000,
      turns: this.items.flatMap(({ event, at }) =>
        event.type === "turn_started" ? [{ turn: event.turn, at: at / 1000 }] : [],
      ),
    });
  }

  play(): void {
    const { position, duration } = this.state.value;
    if (position >= duration) this.seek(0);
    this.set({ playing: true });
    this.last = this.clock.now();
    this.tick();
  }

  pause(): void {
    this.cancel?.();
    this.cancel = null;
    this.set({ playing: false });
  }

  toggle(): void {
    if (this.state.value.playing) this.pause();
    else this.play();
  }

  setSpeed(speed: number): void {
    this.set({ speed });
  }

  /** To just after the next turn's start, else to the end. */
  skipTurn(): void {
    const { position, turns, duration } = this.state.value;
    this.seek(turns.find((it) => it.at > position)?.at ?? duration);
  }

  skipToEnd(): void {
    this.seek(this.state.value.duration);
  }

  seek(position: number): void {
    const to = Math.min(Math.max(position, 0), this.state.value.duration);
    if (to < this.state.value.position) {
      this.view = EMPTY_RUN;
      this.next = 0;
    }
    this.advance(to);
  }

  close(): void {
    this.cancel?.();
    this.cancel = null;
  }

  private tick(): void {
    this.cancel = this.clock.soon(() => {
      const now = this.clock.now();
      const { position, speed, duration } = this.state.value;
      // A hidden tab gets no frames: what was missed there is not played all at once.
      const elapsed = Math.min(now - this.last, 250) / 1000;
      this.last = now;
      this.advance(Math.min(position + elapsed * speed, duration));
      if (this.state.value.position >= duration) this.pause();
      else if (this.state.value.playing) this.tick();
    });
  }

  private advance(position: number): void {
    const from = this.next;
    while (this.next < this.items.length && (this.items[this.next]?.at ?? 0) <= position * 1000 + 1e-6) this.next += 1;
    if (this.next > from || from === 0) {
      this.view = fold(this.view, this.items.slice(from, this.next));
      this.show(this.view);
    }
    this.set({ position });
  }

  private set(change: Partial<Playback>): void {
    this.state.value = { ...this.state.value, ...change };
  }
}
