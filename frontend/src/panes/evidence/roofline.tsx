/**
 * Where the kernels stand under the roof: arithmetic intensity against what memory and arithmetic allow. Without
 * a time there is no height, only the roof above each kernel; that is drawn, and called an estimate.
 */
import type { JSX } from "preact";
import type { Metrics } from "../../generated/events";
import { compact } from "../../state/format";
import { peaks, type Peaks } from "../../state/targets";
import { Section } from "../parts";

const WIDTH = 280;
const HEIGHT = 132;
const LEFT = 34;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
/** FLOP per byte. */
const LOW = 1 / 32;
const HIGH = 1024;

export function Roofline({ metrics, target }: { metrics: Metrics; target: string }): JSX.Element | null {
  const roof = peaks(target);
  const kernels = metrics.kernels.filter((it) => it.arithmetic_intensity !== null && it.arithmetic_intensity > 0);
  if (!roof || !kernels.length) return null;
  const heaviest = kernels.reduce((a, b) => (b.dram_bytes > a.dram_bytes ? b : a));
  const intensity = heaviest.arithmetic_intensity ?? 0;
  const ridge = roof.fp32 / roof.bandwidth;
  const bound = intensity < ridge ? "memory" : "arithmetic";
  return (
    <Section title="Roofline" aside="~ estimate">
      <Chart roof={roof} points={kernels.map((it) => ({ name: it.name, intensity: it.arithmetic_intensity ?? 0 }))} />
      <p class="evidence-note">
        <span class="num">{intensity.toPrecision(2)}</span> FLOP a byte: bound by {bound}, at most{" "}
        <span class="num">~{compact(attainable(roof, intensity))}FLOP/s</span>{" "}
        <span class="muted">
          (the {roof.board}'s data sheet: {(roof.bandwidth / 1e12).toFixed(2)} TB/s, {(roof.fp32 / 1e12).toFixed(0)} TFLOP/s fp32;
          bytes are the least that must move)
        </span>
      </p>
    </Section>
  );
}

function attainable(roof: Peaks, intensity: number): number {
  return Math.min(roof.fp32, intensity * roof.bandwidth);
}

function Chart({ roof, points }: { roof: Peaks; points: { name: string; intensity: number }[] }): JSX.Element {
  const top = roof.fp32 * 2;
  const bottom = roof.bandwidth * LOW;
  const x = (intensity: number) =>
    LEFT + (Math.log2(clamp(intensity, LOW, HIGH) / LOW) / Math.log2(HIGH / LOW)) * (WIDTH - LEFT - RIGHT);
  const y = (rate: number) => TOP + (1 - Math.log2(rate / bottom) / Math.log2(top / bottom)) * (HEIGHT - TOP - BOTTOM);
  const ridge = roof.fp32 / roof.bandwidth;
  const floor = HEIGHT - BOTTOM;
  return (
    <svg class="roofline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={description(roof, points)}>
      {[1e11, 1e12, 1e13, 1e14].map((rate) =>
        rate > bottom && rate < top ? (
          <g key={rate}>
            <line class="grid-line" x1={LEFT} x2={WIDTH - RIGHT} y1={y(rate)} y2={y(rate)} />
            <text class="axis" x={LEFT - 4} y={y(rate) + 3} text-anchor="end">
              {rate >= 1e12 ? `${rate / 1e12} T` : `${rate / 1e9} G`}
            </text>
          </g>
        ) : null,
      )}
      {[0.1, 1, 10, 100].map((at) => (
        <text key={at} class="axis" x={x(at)} y={HEIGHT - 9} text-anchor="middle">
          {at}
        </text>
      ))}
      <text class="axis" x={WIDTH - RIGHT} y={HEIGHT - 9} text-anchor="end">
        FLOP/B
      </text>
      <path class="roof-area" d={`M${x(LOW)},${floor} L${x(LOW)},${y(bottom)} L${x(ridge)},${y(roof.fp32)} L${x(HIGH)},${y(roof.fp32)} L${x(HIGH)},${floor} Z`} />
      <path class="roof" d={`M${x(LOW)},${y(bottom)} L${x(ridge)},${y(roof.fp32)} L${x(HIGH)},${y(roof.fp32)}`} />
      {points.map((point, index) => {
        const at = x(point.intensity);
        const height = y(attainable(roof, clamp(point.intensity, LOW, HIGH)));
        return (
          <g key={index} class="roof-point">
            <line x1={at} x2={at} y1={floor} y2={height} />
            <circle cx={at} cy={height} r={3.5}>
              <title>{point.name}</title>
            </circle>
          </g>
        );
      })}
    </svg>
  );
}

function description(roof: Peaks, points: { name: string; intensity: number }[]): string {
  const each = points.map((it) => `${it.name} at ${it.intensity.toPrecision(2)} FLOP per byte`).join(", ");
  return `Roofline of the ${roof.board}: ${each}.`;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
