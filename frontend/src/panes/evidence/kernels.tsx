/** The launches: shape, registers, shared memory and occupancy of each. */
import type { JSX } from "preact";
import type { CompiledKernel, KernelMetrics, PlannedLaunch, PlanSummary } from "../../generated/events";
import { bytes, compact, count, dims, percent, plural } from "../../state/format";
import { scaleStep } from "../../state/metrics";
import type { TurnView } from "../../state/run";
import { Section } from "../parts";

export function Kernels({ turn }: { turn: TurnView }): JSX.Element | null {
  const { plan, compile, metrics } = turn;
  const rows = metrics ? metrics.kernels.map((it) => measuredRow(it, plan)) : (plan?.launches.map(plannedRow) ?? []);
  if (!rows.length) return null;
  const total = plan?.launches.length ?? 0;
  return (
    <Section
      title="Launches"
      aside={
        plan
          ? [plural(total, "launch", "launches"), plan.scratch_bytes ? `${bytes(plan.scratch_bytes)} scratch` : ""].filter(Boolean).join(", ")
          : null
      }
    >
      {rows.slice(0, MOST).map((row, index) => (
        <Launch key={index} row={row} compiled={compile?.kernels.find((it) => it.name === row.name || it.symbol === row.name) ?? null} />
      ))}
      {rows.length > MOST ? <p class="evidence-note muted">and {rows.length - MOST} more</p> : null}
      {plan?.copies ? <p class="evidence-note num">{plural(plan.copies, "copy", "copies")} in the plan</p> : null}
    </Section>
  );
}

const MOST = 12;

interface Row {
  name: string;
  times: number;
  grid: readonly number[];
  block: readonly number[];
  /** Bytes a block asked for at the launch. */
  dynamic: number;
  measured: KernelMetrics | null;
}

/** Equal launches are measured as one. */
function measuredRow(kernel: KernelMetrics, plan: PlanSummary | null): Row {
  const planned = plan?.launches.find((it) => it.kernel === kernel.name && String(it.block) === String(kernel.block));
  const { name, launches: times, grid, block } = kernel;
  return { name, times, grid, block, dynamic: planned?.shared_bytes ?? 0, measured: kernel };
}

function plannedRow(launch: PlannedLaunch): Row {
  const { kernel: name, grid, block, shared_bytes: dynamic } = launch;
  return { name, times: 1, grid, block, dynamic, measured: null };
}

function Launch({ row, compiled }: { row: Row; compiled: CompiledKernel | null }): JSX.Element {
  const { name, times, grid, block, dynamic, measured } = row;
  const shared = dynamic + (compiled?.shared_bytes ?? 0);
  const spills = (compiled?.spill_load_bytes ?? 0) + (compiled?.spill_store_bytes ?? 0);
  return (
    <div class="launch">
      <div class="launch-name">
        <code class="ellipsis" title={name}>
          {name}
        </code>
        <span class="num muted">
          {times > 1 ? `${count(times)} of ` : ""}⟨{dims(grid)}, {dims(block)}⟩
        </span>
      </div>
      <dl class="facts">
        {compiled ? (
          <>
            <dt>Registers</dt>
            <dd class="num">
              {compiled.registers} <span class="muted">a thread</span>
              {spills ? <span class="tone-bad"> · {bytes(spills)} spilled</span> : null}
            </dd>
          </>
        ) : null}
        <dt>Shared</dt>
        <dd class="num">
          {bytes(shared)} <span class="muted">a block</span>
        </dd>
        {measured ? <Measured kernel={measured} /> : null}
      </dl>
    </div>
  );
}

function Measured({ kernel }: { kernel: KernelMetrics }): JSX.Element {
  const { theoretical_occupancy: occupancy, occupancy_limiter: limiter } = kernel;
  const conflicts = kernel.shared_load_bank_conflicts + kernel.shared_store_bank_conflicts;
  return (
    <>
      <dt>Occupancy</dt>
      <dd class="num">
        <span class="bar small" aria-hidden="true">
          <span class={`metric-${scaleStep(1 - occupancy)}`} style={{ width: `${occupancy * 100}%` }} />
        </span>
        {percent(occupancy)} <span class="muted">theoretical, by {limiter.replaceAll("_", " ")}</span>
        {kernel.occupancy_next_step ? <div class="muted">{kernel.occupancy_next_step}</div> : null}
      </dd>
      <dt>Loads</dt>
      <dd class="num">{efficiency(kernel.global_load_requests, kernel.global_load_sectors, kernel.global_load_efficiency)}</dd>
      <dt>Stores</dt>
      <dd class="num">{efficiency(kernel.global_store_requests, kernel.global_store_sectors, kernel.global_store_efficiency)}</dd>
      {conflicts ? (
        <>
          <dt>Conflicts</dt>
          <dd class="num">
            {count(conflicts)} <span class="muted">extra wavefronts</span>
          </dd>
        </>
      ) : null}
      <dt>Threads</dt>
      <dd class="num">
        {kernel.active_threads_per_warp.toFixed(1)} <span class="muted">of 32 active</span>
      </dd>
      <dt>Waves</dt>
      <dd class="num">
        {kernel.waves.toFixed(2)} <span class="muted">· tail idle {percent(kernel.tail_fraction)}</span>
      </dd>
      <dt>Instructions</dt>
      <dd class="num">{compact(kernel.instructions)}</dd>
    </>
  );
}

function efficiency(requests: number, sectors: number, ratio: number | null): JSX.Element {
  if (!requests) return <span class="muted">none</span>;
  return (
    <>
      {(sectors / requests).toFixed(1)} <span class="muted">sectors/request</span>
      {ratio === null ? null : <span class="muted"> · {percent(ratio)} used</span>}
    </>
  );
}
