/** Why one may believe it: the verdict with what was checked, the score with what was measured. */
import type { JSX } from "preact";
import { openPanel } from "../../state/layout";
import { scoreDelta, turnScore, turnSign } from "../../state/selectors";
import type { TurnView } from "../../state/run";
import * as bench from "../../state/workbench";
import { Elapsed } from "../elapsed";
import { SignView } from "../parts";
import { Families } from "./families";
import { Kernels } from "./kernels";
import { Roofline } from "./roofline";
import { Timings } from "./timings";
import { Verified } from "./verified";

export function EvidencePane(): JSX.Element {
  const turn = bench.shown.value;
  return (
    <section class="pane evidence-pane" aria-label="Evidence">
      <div class="pane-header">
        <span class="pane-title">Evidence</span>
        {turn ? <span class="muted">turn {turn.number}</span> : null}
      </div>
      <div class="scroll">{turn ? <Evidence turn={turn} /> : <Nothing />}</div>
    </section>
  );
}

function Nothing(): JSX.Element {
  return (
    <div class="empty">
      <p>What was checked and what was measured stands here, for the turn that is shown.</p>
    </div>
  );
}

function Evidence({ turn }: { turn: TurnView }): JSX.Element {
  const { target } = bench.run.value.started ?? { target: "" };
  return (
    <>
      <Verdict turn={turn} />
      {turn.verification ? <Verified verification={turn.verification} /> : null}
      {turn.metrics ? <Families metrics={turn.metrics} /> : null}
      {turn.timing || turn.evaluation ? <Timings turn={turn} /> : null}
      {turn.metrics ? <Roofline metrics={turn.metrics} target={target} /> : null}
      <Kernels turn={turn} />
      {turn.evaluation && !turn.evaluation.jailed ? (
        <p class="evidence-note tone-warn">This ran outside the jail: the machine does not allow one.</p>
      ) : null}
    </>
  );
}

function Verdict({ turn }: { turn: TurnView }): JSX.Element {
  const stage = bench.run.value.stage;
  const score = turnScore(turn);
  const change = scoreDelta(bench.run.value, turn);
  const { evaluation } = turn;
  return (
    <div class="verdict" aria-live="off">
      <div class="verdict-line">
        <SignView sign={turnSign(turn)} />
        {turn.verification ? <span class="muted num">{turn.verification.draws} draws</span> : null}
        <span class="grow" />
        {bench.run.value.bestTurn === turn.number ? <span class="badge">best</span> : null}
      </div>
      <div class="score-line">
        <span class={`score num${score === null ? " none" : ""}`}>{score === null ? "–" : score.toFixed(0)}</span>
        <span class="score-words">
          <span>structural score</span>
          {change ? (
            <span class={`num delta ${change.delta > 0.5 ? "up" : change.delta < -0.5 ? "down" : ""}`}>
              {change.delta > 0.5 ? "▲ " : change.delta < -0.5 ? "▼ " : "± "}
              {Math.abs(change.delta).toFixed(0)} against turn {change.against}
            </span>
          ) : (
            <span class="muted">{score === null ? "of 100, once it is verified" : "of 100"}</span>
          )}
        </span>
      </div>
      <div class="verdict-message">
        {evaluation && evaluation.verdict !== "passed" ? (
          <>
            <span>{evaluation.message}</span>
            {evaluation.verdict === "compile_error" ? (
              <button type="button" class="link" onClick={() => openPanel("log")}>
                compile log
              </button>
            ) : null}
          </>
        ) : !evaluation && stage?.turn === turn.number ? (
          <Elapsed stage={stage} />
        ) : null}
      </div>
    </div>
  );
}
