import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { compact, money, seconds } from "../../state/format";
import type { TurnView } from "../../state/run";
import { spending, stageText, turnPlace, turnScore, turnSign } from "../../state/selectors";
import { stream } from "../../state/stream";
import * as bench from "../../state/workbench";
import { SignView, WithLines } from "../parts";
import { LiveText } from "./live";
import { StepView } from "./steps";

/** The agent's own account: what each turn tried, what was measured, and why the next step is what it is. */
export function AgentTab(): JSX.Element {
  const { turns, started, ended } = bench.run.value;
  const list = useRef<HTMLOListElement>(null);
  const follow = useFollowEnd(list);
  useLayoutEffect(follow);
  if (!started && !ended) return <p class="empty">What the agent tried and why appears here, turn by turn.</p>;
  return (
    <div class="agent">
      {started ? (
        <details class="agent-task">
          <summary>
            <code>{started.task.prototype}</code>
          </summary>
          {started.task.notes.map((note) => (
            <div key={note} class="muted">
              {note}
            </div>
          ))}
        </details>
      ) : null}
      <ModelLine />
      <ol ref={list}>
        {turns.map((turn) => (
          <AgentTurn key={turn.number} turn={turn} newest={turn === turns.at(-1)} onGrowth={follow} />
        ))}
      </ol>
      {ended ? <p class="agent-end">{ended.message}</p> : null}
    </div>
  );
}

/** Which model, how it is driven, and what it has taken. */
function ModelLine(): JSX.Element | null {
  const detail = bench.detail.value;
  if (!detail?.model) return null;
  const spent = spending(bench.run.value, detail.turns_again);
  const first = bench.run.value.turns.flatMap((turn) => turn.steps).find((step) => step.kind === "answer");
  const firstToken = first?.kind === "answer" ? first.answer.first_token_seconds : null;
  return (
    <p class="agent-model muted num">
      <span class="strong">{detail.model}</span>
      <span>{detail.protocol}</span>
      {firstToken === null ? null : <span>first token {firstToken.toFixed(2)} s</span>}
      {spent ? (
        <span title="Prompts and answers of this run, failed attempts included">
          {spent.estimated ? "~" : ""}
          {compact(spent.prompt)} tokens in, {compact(spent.completion)} out
        </span>
      ) : null}
      {spent && spent.cost !== null ? <span>cost {money(spent.cost)}</span> : null}
      {detail.resumes ? (
        <button type="button" class="link inline" onClick={() => void bench.openRun(detail.resumes ?? "")}>
          goes on from run {detail.resumes.slice(0, 6)}
        </button>
      ) : null}
    </p>
  );
}

function AgentTurn({ turn, newest, onGrowth }: { turn: TurnView; newest: boolean; onGrowth: () => void }): JSX.Element {
  const score = turnScore(turn);
  const stage = bench.run.value.stage;
  // A wait stands among the steps, and text that comes speaks for itself.
  const asking = newest && stage?.stage === "model" && stage.turn === turn.number && stream.value === null;
  return (
    <li class={turn.number === bench.shown.value?.number ? "current" : ""}>
      <button type="button" class="agent-turn" onClick={() => bench.selectTurn(turn.number)}>
        <span class="num muted">{turn.number}</span>
        <span class="strong">{turn.title}</span>
        <SignView sign={turnSign(turn)} />
        {score === null ? null : <span class="num">{score.toFixed(0)}</span>}
        {turnPlace(turn) ? <span class="muted">{turnPlace(turn)}</span> : null}
        {turn.sameAs === null ? null : <span class="muted">same as turn {turn.sameAs}</span>}
        {turn.seconds === null ? null : <span class="num muted">{seconds(turn.seconds)}</span>}
      </button>
      {turn.steps.map((step, index) => (
        <StepView key={index} step={step} open={newest} />
      ))}
      {newest && !bench.run.value.ended ? <LiveText turn={turn.number} onGrowth={onGrowth} /> : null}
      {asking ? <div class="agent-asking tone-busy">◐ {stageText(stage)}</div> : null}
      {turn.reflection ? (
        <p>
          <WithLines
            text={turn.reflection}
            onLine={(line) => {
              bench.selectTurn(turn.number);
              bench.show("candidate", line);
            }}
          />
        </p>
      ) : null}
    </li>
  );
}

/** Near enough to the end to be taken for it, in pixels. */
const NEAR = 32;

/** Keeps the end in sight while the content grows, until somebody scrolls up; at the end again, it goes on. */
function useFollowEnd(inside: { current: HTMLElement | null }): () => void {
  const atEnd = useRef(true);
  const holder = useRef<HTMLElement | null>(null);
  const follow = useRef(() => {
    const box = (holder.current ??= inside.current?.closest<HTMLElement>(".panel-body") ?? null);
    if (box && atEnd.current) box.scrollTop = box.scrollHeight;
  });
  const present = bench.run.value.started !== null;
  useEffect(() => {
    const box = inside.current?.closest<HTMLElement>(".panel-body");
    if (!box) return;
    holder.current = box;
    const onScroll = () => (atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR);
    box.addEventListener("scroll", onScroll, { passive: true });
    return () => box.removeEventListener("scroll", onScroll);
  }, [present]);
  return follow.current;
}
