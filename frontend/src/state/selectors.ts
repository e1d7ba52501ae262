/** Small questions about a run that more than one pane asks. */
import { ENDINGS, RUNNING, stageWords, verdictSign, type Sign } from "./verdicts";
import type { RunView, StageView, TurnView } from "./run";

export function turnSign(turn: TurnView): Sign {
  if (turn.evaluation) return verdictSign(turn.evaluation.verdict);
  if (turn.ending === "keep") return ENDINGS.kept;
  if (turn.ending) return { shape: "◌", word: "nothing more", tone: "muted" };
  if (turn.abandoned) return { shape: "◌", word: "not judged", tone: "muted" };
  return turn.writing ? { ...RUNNING, word: "writing" } : { ...RUNNING, word: "judging" };
}

/** The structural score of a passed turn; a candidate that failed has none. */
export function turnScore(turn: TurnView): number | null {
  if (turn.evaluation && turn.evaluation.verdict !== "passed") return null;
  return turn.metrics?.structural_score ?? null;
}

/** Where in a search a turn stands: "branch 3, from turns 2 and 5"; nothing for a single trajectory. */
export function turnPlace(turn: TurnView): string {
  const parents = [turn.baseTurn, turn.alsoFrom].filter((it) => it !== null);
  const from = parents.length ? `from turn${parents.length > 1 ? "s" : ""} ${parents.join(" and ")}` : "";
  if (turn.branch !== 1) return [turn.branch === 0 ? "the given kernel" : `branch ${turn.branch}`, from].filter(Boolean).join(", ");
  return turn.baseTurn !== null && turn.baseTurn !== turn.number - 1 ? from : "";
}

/** Against the turn that this one was made from, else the last scored one before it. */
export function scoreDelta(run: RunView, turn: TurnView): { delta: number; against: number } | null {
  const score = turnScore(turn);
  if (score === null) return null;
  const earlier = run.turns.filter((it) => it.number < turn.number && turnScore(it) !== null);
  const base = earlier.find((it) => it.number === turn.baseTurn) ?? earlier.at(-1);
  const before = base ? turnScore(base) : null;
  return base && before !== null ? { delta: score - before, against: base.number } : null;
}

/** "compiling", "replaying 2 of 5", "waiting for the model, attempt 2 of 5", "waiting for a GPU: 2nd". */
export function stageText(stage: StageView): string {
  if (stage.stage === "model_wait") return `${stageWords(stage.stage)}, attempt ${stage.done ?? 0} of ${stage.of ?? 0}`;
  if (stage.stage === "gpu" && stage.detail) return stage.detail;
  const progress = stage.of === null ? "" : ` ${stage.done ?? 0} of ${stage.of}`;
  return `${stageWords(stage.stage)}${progress}`;
}

export interface Spending {
  prompt: number;
  completion: number;
  /** Null where no price is known. */
  cost: number | null;
  estimated: boolean;
}

/** What this run took of its language model; turns that it tells again were paid for by another run. */
export function spending(run: RunView, turnsAgain: readonly number[]): Spending | null {
  const own = run.spent.filter((it) => !turnsAgain.includes(it.turn));
  if (!own.some((it) => it.prompt_tokens || it.completion_tokens)) return null; // no attempt came through
  return {
    prompt: own.reduce((sum, it) => sum + it.prompt_tokens, 0),
    completion: own.reduce((sum, it) => sum + it.completion_tokens, 0),
    cost: own.some((it) => it.cost !== null) ? own.reduce((sum, it) => sum + (it.cost ?? 0), 0) : null,
    estimated: own.some((it) => it.estimated),
  };
}

export function failedChecks(turn: TurnView): number {
  return turn.verification?.checks.filter((it) => !it.passed).length ?? 0;
}
