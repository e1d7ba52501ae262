/** Verdicts, endings and stages in words and shapes: status is never colour alone. */
import type { EndReason, RunState, Verdict } from "../generated/events";

export type Tone = "good" | "bad" | "busy" | "muted" | "warn";

export interface Sign {
  /** One character that says the status without colour. */
  shape: string;
  word: string;
  tone: Tone;
}

export const VERDICTS: Record<Verdict, Sign> = {
  passed: { shape: "●", word: "verified", tone: "good" },
  compile_error: { shape: "✗", word: "does not compile", tone: "bad" },
  launch_error: { shape: "✗", word: "launch failed", tone: "bad" },
  wrong_result: { shape: "✗", word: "wrong result", tone: "bad" },
  runtime_error: { shape: "✗", word: "fault while running", tone: "bad" },
  timeout: { shape: "✗", word: "over the time limit", tone: "bad" },
  unsupported: { shape: "–", word: "not supported", tone: "muted" },
  rule_violation: { shape: "✗", word: "breaks a rule", tone: "bad" },
  degenerate_task: { shape: "–", word: "task cannot be judged", tone: "warn" },
  internal_error: { shape: "!", word: "Kernelwright's fault", tone: "warn" },
};

export const RUNNING: Sign = { shape: "◐", word: "running", tone: "busy" };
const QUEUED: Sign = { shape: "○", word: "queued", tone: "muted" };

export function verdictSign(verdict: string | null | undefined): Sign {
  if (!verdict) return RUNNING;
  return Object.hasOwn(VERDICTS, verdict)
    ? VERDICTS[verdict as Verdict]
    : { shape: "?", word: verdict.replaceAll("_", " "), tone: "muted" };
}

export const ENDINGS: Record<EndReason, Sign> = {
  finished: { shape: "●", word: "finished", tone: "good" },
  kept: { shape: "–", word: "left sequential", tone: "muted" },
  turn_limit: { shape: "●", word: "all turns used", tone: "good" },
  time_limit: { shape: "●", word: "time limit reached", tone: "good" },
  token_limit: { shape: "●", word: "all tokens used", tone: "good" },
  cost_limit: { shape: "●", word: "money limit reached", tone: "good" },
  model_unavailable: { shape: "!", word: "no answer from the model", tone: "warn" },
  cancelled: { shape: "◌", word: "cancelled", tone: "muted" },
  bad_input: { shape: "✗", word: "needs a change", tone: "warn" },
  unsupported: { shape: "–", word: "not supported", tone: "warn" },
  interrupted: { shape: "◌", word: "interrupted", tone: "warn" },
  internal_error: { shape: "!", word: "Kernelwright's fault", tone: "warn" },
};

/** How a run in a list stands: its state, then its reason, then its best verdict. */
export function runSign(run: { state: RunState; reason: EndReason | null; verdict: Verdict | null }): Sign {
  switch (run.state) {
    case "queued":
      return QUEUED;
    case "running":
      return RUNNING;
    case "cancelling":
      return { shape: "◐", word: "stopping", tone: "busy" };
    case "interrupted":
      return ENDINGS.interrupted;
    case "cancelled":
      return ENDINGS.cancelled;
    case "failed":
      return run.reason ? endingSign(run.reason, run.verdict) : { shape: "✗", word: "failed", tone: "bad" };
    case "finished":
      return endingSign(run.reason ?? "finished", run.verdict);
  }
}

export function endingSign(reason: EndReason, verdict: string | null): Sign {
  const sign = ENDINGS[reason];
  return sign.tone === "good" ? verdictSign(verdict ?? "internal_error") : sign;
}

const STAGES: Record<string, string> = {
  model: "the model is at work",
  model_wait: "waiting for the model",
  gpu: "on a GPU elsewhere",
  reference: "building the reference",
  compile: "compiling",
  record: "recording the launch",
  lower: "lowering PTX",
  replay: "replaying",
  verify: "comparing results",
  measure: "measuring",
};

export function stageWords(stage: string): string {
  return STAGES[stage] ?? stage;
}
