/** The families of structural metrics: a bar each, and under it the number and the line behind the score. */
import type { JSX } from "preact";
import type { Metrics } from "../../generated/events";
import { familyNotes, familyTitle, scaleStep } from "../../state/metrics";
import * as bench from "../../state/workbench";
import { Section, WithLines } from "../parts";

export function Families({ metrics }: { metrics: Metrics }): JSX.Element {
  const { byFamily, others } = familyNotes(metrics);
  const sizes = Object.entries(metrics.sizes)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  return (
    <Section title="Structure" aside={metrics.measured_by === "ncu" ? "Nsight Compute" : "measured, emulator"}>
      <ul class="families">
        {Object.entries(metrics.families).map(([slug, score]) => (
          <Family key={slug} title={familyTitle(slug)} score={score} note={byFamily.get(slug) ?? ""} />
        ))}
      </ul>
      {others.length ? (
        <ul class="absent">
          {others.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
      {sizes ? <p class="evidence-note muted num">Measured at {sizes}.</p> : null}
    </Section>
  );
}

function Family({ title, score, note }: { title: string; score: number; note: string }): JSX.Element {
  return (
    <li class="family">
      <div class="family-line">
        <span class="family-name">{title}</span>
        <span class="bar" role="img" aria-label={`${title}: ${score.toFixed(2)} of 1`}>
          <span class={`metric-${scaleStep(1 - score)}`} style={{ width: `${Math.max(score, 0.02) * 100}%` }} />
        </span>
        <span class="num family-score">{score.toFixed(2)}</span>
      </div>
      {note ? (
        <div class="family-note">
          <WithLines text={note} onLine={(line) => bench.show("candidate", line)} />
        </div>
      ) : null}
    </li>
  );
}
