import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { seconds } from "../../state/format";
import type { TurnView } from "../../state/run";
import { turnScore, turnSign } from "../../state/selectors";
import * as bench from "../../state/workbench";
import { SignView, WithLines } from "../parts";

/** The agent's own account: what each turn tried, what was measured, and why the next step is what it is. */
export function AgentTab(): JSX.Element {
  const { turns, started, ended } = bench.run.value;
  const list = useRef<HTMLOListElement>(null);
  const newest = turns.at(-1);
  useEffect(() => {
    if (bench.following.value) list.current?.lastElementChild?.scrollIntoView({ block: "nearest" });
  }, [turns.length, newest?.reflection, newest?.prose]);
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
      <ol ref={list}>
        {turns.map((turn) => (
          <AgentTurn key={turn.number} turn={turn} />
        ))}
      </ol>
      {ended ? <p class="agent-end">{ended.message}</p> : null}
    </div>
  );
}

function AgentTurn({ turn }: { turn: TurnView }): JSX.Element {
  const score = turnScore(turn);
  const text = turn.reflection || turn.prose;
  return (
    <li class={turn.number === bench.shown.value?.number ? "current" : ""}>
      <button type="button" class="agent-turn" onClick={() => bench.selectTurn(turn.number)}>
        <span class="num muted">{turn.number}</span>
        <span class="strong">{turn.title}</span>
        <SignView sign={turnSign(turn)} />
        {score === null ? null : <span class="num">{score.toFixed(0)}</span>}
        {turn.baseTurn !== null && turn.baseTurn !== turn.number - 1 ? (
          <span class="muted">from turn {turn.baseTurn}</span>
        ) : null}
        {turn.seconds === null ? null : <span class="num muted">{seconds(turn.seconds)}</span>}
      </button>
      {text ? (
        <p>
          <WithLines
            text={text}
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
