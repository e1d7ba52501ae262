/**
 * Where the kernels stand under the roof: arithmetic intensity against what memory and arithmetic allow. Without
 * a time there is no height, only the roof above each kernel; that is drawn, and called an estimate.
 */
import type { JSX } from "preact";
import type { KernelMetrics, Metrics } from "../../generated/events";
import { percent } from "../../state/format";
import { Section } from "../parts";

const WIDTH = 280;
const HEIGHT = 128;
const LEFT = 38;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
/** FLOP per byte. */
const LOW = 1 / 32;
const HIGH = 1024;
/** The lowest share of the peak that the chart has room for. */
const FLOOR = 1 / 1024;

interface Point {
  name: string;
  intensity: number;
  share: number;
}

export function Roofline({ metrics, target }: { metrics: Metrics; target: string }): JSX.Element | null {
  const heaviest = metrics.kernels.reduce<KernelMetrics | null>(
    (most, it) => (it.arithmetic_intensity !== null && (most === null || it.dram_bytes > most.dram_bytes) ? it : most),
    null,
  );
  const ridge = heaviest?.ridge_intensity ?? null;
  const intensity = heaviest?.arithmetic_intensity ?? null;
  if (!heaviest || ridge === null || intensity === null || intensity <= 0) return null;
  const points = metrics.kernels.flatMap((it): Point[] =>
    it.arithmetic_intensity ? [{ name: it.name, intensity: it.arithmetic_intensity, share: it.arithmetic_intensity / ridge }] : [],
  );
  const share = heaviest.attainable_share_of_peak ?? Math.min(1, intensity / ridge);
  const binds = heaviest.roof === "dram_bandwidth" || intensity < ridge ? "DRAM bandwidth" : `${heaviest.roof || "fp32"} arithmetic`;
  return (
    <Section title="Roofline" aside="~ estimate">
      <Chart ridge={ridge} points={points} target={target} />
      <p class="evidence-note">
        <span class="num">{intensity.toPrecision(2)}</span> FLOP a byte, {binds} binds: at most{" "}
        <span class="num">~{percent(share)}</span> of {target}'s peak.{" "}
        <span class="muted">Bytes are the least that must move; a kernel's own height needs a time, so a GPU.</span>
      </p>
    </Section>
  );
}

function Chart({ ridge, points, target }: { ridge: number; points: readonly Point[]; target: string }): JSX.Element {
  const x = (intensity: number) =>
    LEFT + (Math.log2(clamp(intensity, LOW, HIGH) / LOW) / Math.log2(HIGH / LOW)) * (WIDTH - LEFT - RIGHT);
  const y = (share: number) => TOP + (Math.log2(clamp(share, FLOOR, 1)) / Math.log2(FLOOR)) * (HEIGHT - TOP - BOTTOM);
  const floor = HEIGHT - BOTTOM;
  const roof = `M${x(LOW)},${y(LOW / ridge)} L${x(ridge)},${y(1)} L${x(HIGH)},${y(1)}`;
  return (
    <svg class="roofline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={description(points, target)}>
      {[1, 0.1, 0.01].map((share) => (
        <g key={share}>
          <line class="grid-line" x1={LEFT} x2={WIDTH - RIGHT} y1={y(share)} y2={y(share)} />
          <text class="axis" x={LEFT - 4} y={y(share) + 3} text-anchor="end">
            {share * 100}%
          </text>
        </g>
      ))}
      {[0.1, 1, 10, 100].map((at) => (
        <text key={at} class="axis" x={x(at)} y={HEIGHT - 9} text-anchor="middle">
          {at}
        </text>
      ))}
      <text class="axis" x={WIDTH - RIGHT} y={HEIGHT - 9} text-anchor="end">
        FLOP/B
      </text>
      <path class="roof-area" d={`${roof} L${x(HIGH)},${floor} L${x(LOW)},${floor} Z`} />
      <path class="roof" d={roof} />
      {points.map((point, index) => (
        <g key={index} class="roof-point">
          <line x1={x(point.intensity)} x2={x(point.intensity)} y1={floor} y2={y(point.share)} />
          <circle cx={x(point.intensity)} cy={y(point.share)} r={3.5}>
            <title>{point.name}</title>
          </circle>
        </g>
      ))}
    </svg>
  );
}

function description(points: readonly Point[], target: string): string {
  const each = points.map((it) => `${it.name} at ${it.intensity.toPrecision(2)} FLOP per byte`).join(", ");
  return `Roofline of ${target}: ${each}.`;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
