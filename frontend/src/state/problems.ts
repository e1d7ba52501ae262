/** Everything that needs a person's eye, from the task, nvcc and the checks, in one list. */
import { computed } from "@preact/signals";
import type { Diagnostic, Problem } from "../generated/events";
import { active, isStale } from "./documents";
import { run, shown } from "./workbench";

export interface ProblemItem {
  severity: "error" | "warning" | "note";
  /** Which tool says so. */
  owner: string;
  where: "source" | "candidate";
  file: string;
  line: number | null;
  column: number | null;
  message: string;
  hint: string;
  /** Said of a text that has been edited since. */
  stale: boolean;
}

export const problems = computed<ProblemItem[]>(() => {
  const items: ProblemItem[] = [];
  const { ended } = run.value;
  const document = active.value;
  const stale = document !== null && isStale(document);
  if (ended?.problem) {
    const { problem } = ended;
    items.push({
      severity: "error",
      owner: "task",
      where: "source",
      file: problem.file === "" ? (document?.filename ?? "source") : problem.file,
      line: problem.line,
      column: problem.column,
      message: problem.message,
      hint: asksHere(problem) ? "" : problem.hint,
      stale,
    });
  }
  const turn = shown.value;
  for (const diagnostic of turn?.compile?.diagnostics ?? []) {
    items.push({
      ...ofDiagnostic(diagnostic),
      where: "candidate",
      file: `${turn?.file ?? "kernel.cu"} · turn ${turn?.number ?? 0}`,
    });
  }
  const evaluation = turn?.evaluation;
  if (evaluation && evaluation.verdict !== "passed" && evaluation.verdict !== "compile_error") {
    items.push({
      severity: "error",
      owner: "judge",
      where: "candidate",
      file: `${turn.file} · turn ${turn.number}`,
      line: lineIn(evaluation.message),
      column: null,
      message: evaluation.message,
      hint: "",
      stale: false,
    });
  }
  return items;
});

/** Kinds whose choices are functions or classes to choose from. */
export const CHOOSES_ENTRY: ReadonlySet<string> = new Set(["several_functions", "unknown_entry"]);

/** The hint says how to answer on the command line; here the answer is a button or a form. */
export function asksHere(problem: Problem): boolean {
  return problem.choices.length > 0 && (CHOOSES_ENTRY.has(problem.kind) || problem.kind === "unknown_extent");
}

function ofDiagnostic(diagnostic: Diagnostic): Omit<ProblemItem, "where" | "file"> {
  const { severity, line, column, message } = diagnostic;
  return { severity, owner: "nvcc", line, column, message, hint: "", stale: false };
}

/** A fault names its place in words: "kernel.cu:14: out of bounds ..." or "line 14". */
function lineIn(message: string): number | null {
  const found = /\.cu:(\d+)\b/.exec(message) ?? /\bline (\d+)\b/i.exec(message);
  return found ? Number(found[1]) : null;
}

export const problemCount = computed(() => problems.value.filter((it) => it.severity !== "note").length);
