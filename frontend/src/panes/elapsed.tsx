/** Where the judge is, and for how long: "compiling 1.1 s". */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { StageView } from "../state/run";
import { stageText } from "../state/selectors";
import { player } from "../state/workbench";

const now = signal(performance.now());
/** When this page first saw the stage: the server's clock need not be ours. */
let seen: { since: number; turn: number; at: number } | null = null;

export function Elapsed({ stage }: { stage: StageView }): JSX.Element {
  useEffect(() => {
    const timer = setInterval(() => (now.value = performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  if (seen?.since !== stage.since || seen.turn !== stage.turn) seen = { since: stage.since, turn: stage.turn, at: performance.now() };
  const playing = player.value?.state.value;
  const elapsed = playing ? playing.position - stage.since / 1000 : (now.value - seen.at) / 1000;
  const part = stage.of && stage.stage !== "model_wait" ? (stage.done ?? 0) / stage.of : null;
  return (
    <span class="elapsed" title={[stage.detail, stage.device].filter(Boolean).join(", ")}>
      <span class="sign tone-busy">
        <span class="shape" aria-hidden="true">
          ◐
        </span>
        <span>{stageText(stage)}</span>
      </span>
      {elapsed >= 0.2 ? <span class="num muted">{elapsed.toFixed(1)} s</span> : null}
      {part === null ? null : (
        <span class="meter" aria-hidden="true">
          <span style={{ width: `${part * 100}%` }} />
        </span>
      )}
    </span>
  );
}
