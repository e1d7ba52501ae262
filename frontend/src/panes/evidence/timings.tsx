/** Time on a GPU, with its interval; and where there is none, why. */
import type { JSX } from "preact";
import type { TurnView } from "../../state/run";
import { Section } from "../parts";

export function Timings({ turn }: { turn: TurnView }): JSX.Element | null {
  const { timing, evaluation } = turn;
  if (!timing) {
    if (evaluation?.verdict !== "passed" || evaluation.backend !== "emulator") return null;
    return (
      <p class="evidence-note muted">No time: an emulator measures structure, not speed. On a GPU the time stands here.</p>
    );
  }
  const { candidate_us: time, baselines } = timing;
  return (
    <Section title="Time" aside="measured, GPU">
      <dl class="facts">
        <dt>Candidate</dt>
        <dd class="num">
          {time.median.toPrecision(4)} µs{" "}
          <span class="muted">
            [{time.low.toPrecision(4)}, {time.high.toPrecision(4)}]
          </span>
        </dd>
        {baselines.map((it) => (
          <>
            <dt key={it.name}>{it.name}</dt>
            <dd class="num">
              {it.us.toPrecision(4)} µs · <span class="strong">{it.speedup.toFixed(2)}×</span>{" "}
              <span class="muted">
                [{it.speedup_low.toFixed(2)}, {it.speedup_high.toFixed(2)}]
              </span>
            </dd>
          </>
        ))}
      </dl>
    </Section>
  );
}
