/** What the comparison covered: draws, sizes, error against what was allowed, and the first wrong element. */
import type { JSX } from "preact";
import type { Mismatch, Verification } from "../../generated/events";
import { asNumber, count, percent, scientific } from "../../state/format";
import { openPanel } from "../../state/layout";
import { Section } from "../parts";

export function Verified({ verification }: { verification: Verification }): JSX.Element {
  const { draws, draws_passed, checks, sizes, distributions, max_error, allowed_error, first_mismatch, seed } = verification;
  const passed = checks.filter((it) => it.passed).length;
  return (
    <Section title="Verification" aside={`${draws_passed ?? draws} of ${draws} draws`}>
      <dl class="facts">
        <dt>Checks</dt>
        <dd class="num">
          <button type="button" class="link inline" onClick={() => openPanel("checks")}>
            {passed} of {checks.length}
          </button>{" "}
          passed
        </dd>
        <dt>Error</dt>
        <dd class="num">
          {max_error === null ? "integers, exact" : <ErrorAgainst error={asNumber(max_error)} allowed={allowed_error === null ? null : asNumber(allowed_error)} />}
        </dd>
        <dt>Sizes</dt>
        <dd class="num">{sizeWords(sizes)}</dd>
        <dt>Values</dt>
        <dd>{[...new Set(distributions)].map((it) => it.replaceAll("_", " ")).join(", ")}</dd>
        {seed ? (
          <>
            <dt>Seed</dt>
            <dd class="num ellipsis" title={seed}>
              {seed.slice(0, 12)}
            </dd>
          </>
        ) : null}
      </dl>
      {first_mismatch ? <FirstMismatch mismatch={first_mismatch} /> : null}
    </Section>
  );
}

function ErrorAgainst({ error, allowed }: { error: number; allowed: number | null }): JSX.Element {
  if (allowed === null) return <span>{scientific(error)}</span>;
  return (
    <span>
      {scientific(error)} <span class="muted">of {scientific(allowed)} allowed</span>
      {error <= allowed && allowed > 0 ? <span class="muted"> · {percent(error / allowed)}</span> : null}
    </span>
  );
}

function sizeWords(sizes: Record<string, number>[]): string {
  const words = sizes.map((it) => Object.values(it).map(count).join(" × "));
  return [...new Set(words)].filter(Boolean).join(", ");
}

function FirstMismatch({ mismatch }: { mismatch: Mismatch }): JSX.Element {
  const { array, index, got, expected, inputs, sizes, draw } = mismatch;
  return (
    <div class="mismatch">
      <div>
        First wrong element: <code>{`${array}[${index.join("][")}]`}</code>
      </div>
      <dl class="facts">
        <dt>Got</dt>
        <dd class="num tone-bad">{String(got)}</dd>
        <dt>Expected</dt>
        <dd class="num">{String(expected)}</dd>
        {Object.entries(inputs).map(([name, value]) => (
          <>
            <dt key={name}>
              <code>{name}</code>
            </dt>
            <dd class="num">{String(value)}</dd>
          </>
        ))}
        <dt>In</dt>
        <dd class="num muted">
          draw {draw + 1}
          {Object.entries(sizes).map(([name, value]) => `, ${name} = ${value}`)}
        </dd>
      </dl>
    </div>
  );
}
