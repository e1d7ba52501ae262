import type { JSX } from "preact";
import * as bench from "../../state/workbench";

/** Every check of the shown turn, with what it found. */
export function ChecksTab(): JSX.Element {
  const turn = bench.shown.value;
  const checks = turn?.verification?.checks ?? [];
  if (!checks.length) {
    return (
      <p class="empty">
        {!turn
          ? "Every check of a candidate appears here with what it found."
          : turn.evaluation
            ? `Turn ${turn.number} did not get as far as being compared: ${turn.evaluation.message}`
            : "Not compared yet."}
      </p>
    );
  }
  const rule = bench.run.value.started?.task.tolerance_rule;
  return (
    <>
      <table class="grid checks">
        <thead>
          <tr>
            <th scope="col">Check</th>
            <th scope="col">Result</th>
            <th scope="col">What was found</th>
          </tr>
        </thead>
        <tbody>
          {checks.map((it) => (
            <tr key={it.name}>
              <th scope="row">{words(it.name)}</th>
              <td>
                <span class={`sign tone-${it.passed ? "good" : "bad"}`}>
                  <span class="shape" aria-hidden="true">
                    {it.passed ? "●" : "✗"}
                  </span>
                  <span>{it.passed ? "passed" : "failed"}</span>
                </span>
              </td>
              <td>{it.detail}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rule ? <p class="empty muted">{rule}</p> : null}
    </>
  );
}

function words(slug: string): string {
  const text = slug.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
