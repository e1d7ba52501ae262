import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import * as bench from "../../state/workbench";

/** What the compilers and programs printed, in chunks as it came. */
export function LogTab(): JSX.Element {
  const turn = bench.shown.value;
  const before = bench.run.value.logs;
  const logs = [...before, ...(turn?.logs ?? [])];
  const text = logs.map((it) => it.text).join("");
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (turn && !turn.evaluation) end.current?.scrollIntoView({ block: "nearest" });
  }, [text]);
  // A turn that was stored without its chunks still has the whole log.
  const whole = logs.length ? null : (turn?.compile?.log ?? "");
  if (!logs.length && !whole) {
    return (
      <p class="empty">
        {!turn
          ? "nvcc's output appears here as it comes."
          : turn.compile
            ? `nvcc said nothing; it took ${turn.compile.seconds.toFixed(1)} s.`
            : "Not compiled yet."}
      </p>
    );
  }
  return (
    <div class="log">
      {whole ? <pre>{whole}</pre> : null}
      {logs.map((chunk, index) => (
        <div key={index} class={`log-chunk stream-${chunk.stream}`}>
          <span class="log-stream muted">{chunk.stream}</span>
          <pre>{chunk.text.replace(/\n$/, "")}</pre>
        </div>
      ))}
      {turn?.compile ? <p class="muted num log-end">compiled in {turn.compile.seconds.toFixed(1)} s</p> : null}
      <div ref={end} />
    </div>
  );
}
