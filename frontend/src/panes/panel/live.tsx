/** What the model is writing, as it comes. Text is appended to the page by hand: each frame costs what is new in it. */
import { useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { stream } from "../../state/stream";

/** Text is laid out a block at a time: a long answer must not be laid out anew for each word. */
const BLOCK = 1500;

export function LiveText({ turn, onGrowth }: { turn: number; onGrowth: () => void }): JSX.Element {
  const host = useRef<HTMLPreElement>(null);
  const painter = useRef<Painter | null>(null);
  useSignalEffect(() => {
    const now = stream.value;
    if (!host.current) return;
    painter.current ??= new Painter(host.current);
    if (now?.turn === turn) painter.current.show(now.request, now.chunks);
    else painter.current.clear();
    onGrowth();
  });
  return <pre ref={host} class="agent-live" aria-label="What the model is writing" />;
}

class Painter {
  private request = 0;
  private painted = 0;
  private block: HTMLElement | null = null;
  private words: Text | null = null;
  private thought = false;

  constructor(private readonly host: HTMLElement) {}

  clear(): void {
    this.request = 0;
    this.painted = 0;
    this.block = null;
    if (this.host.firstChild) this.host.replaceChildren();
  }

  show(request: number, chunks: readonly { text: string; thought: boolean }[]): void {
    if (request !== this.request) {
      this.clear();
      this.request = request;
    }
    let text = "";
    for (; this.painted < chunks.length; this.painted += 1) {
      const chunk = chunks[this.painted];
      if (!chunk) break;
      if (text && chunk.thought !== this.thought) {
        this.append(text);
        text = "";
      }
      if (chunk.thought !== this.thought) this.block = null;
      this.thought = chunk.thought;
      text += chunk.text;
    }
    if (text) this.append(text);
  }

  private append(text: string): void {
    if (this.block === null || this.words === null) {
      this.block = document.createElement("div");
      if (this.thought) this.block.className = "thought";
      this.words = document.createTextNode("");
      this.block.append(this.words);
      this.host.append(this.block);
    }
    // A full block ends with its line, so that blocks look like one text.
    const end = this.words.length > BLOCK ? text.indexOf("\n") : -1;
    if (end < 0) {
      this.words.appendData(text);
      return;
    }
    this.words.appendData(text.slice(0, end));
    this.block = null;
    if (end + 1 < text.length) this.append(text.slice(end + 1));
  }
}
