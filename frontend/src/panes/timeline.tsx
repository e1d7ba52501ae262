/** The turns in order: verdict by shape and word, score, and which is best; and a recording's controls. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { seconds } from "../state/format";
import { SPEEDS, type Player } from "../state/player";
import type { TurnView } from "../state/run";
import { scoreDelta, turnPlace, turnScore, turnSign } from "../state/selectors";
import { endingSign } from "../state/verdicts";
import * as bench from "../state/workbench";
import { Elapsed } from "./elapsed";
import { Icon, IconButton, SignView } from "./parts";

export function Timeline(): JSX.Element {
  const { turns, ended, stage, bestTurn } = bench.run.value;
  const shownTurn = bench.shown.value?.number;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shownTurn, turns.length]);
  return (
    <div class="timeline" role="group" aria-label="Turns">
      <div class="turns" ref={list}>
        {turns.map((turn) => (
          <TurnChip key={turn.number} turn={turn} best={turn.number === bestTurn} shown={turn.number === shownTurn} />
        ))}
        {turns.length ? null : <span class="muted turns-empty">Turns appear here.</span>}
      </div>
      <span class="timeline-state">
        {stage ? <Elapsed stage={stage} /> : null}
        {ended ? (
          <span class="ended ellipsis" title={ended.message}>
            <SignView sign={endingSign(ended.reason, ended.verdict)} />
            {endingSign(ended.reason, ended.verdict).tone === "good" ? <span class="muted">{ended.message}</span> : null}
          </span>
        ) : null}
      </span>
    </div>
  );
}

function TurnChip({ turn, best, shown }: { turn: TurnView; best: boolean; shown: boolean }): JSX.Element {
  const sign = turnSign(turn);
  const score = turnScore(turn);
  const change = scoreDelta(bench.run.value, turn);
  const title = [
    `Turn ${turn.number}: ${turn.title}`,
    `${sign.word}${score === null ? "" : `, score ${score.toFixed(0)}`}${best ? ", best so far" : ""}`,
    turnPlace(turn),
    turn.sameAs === null ? "" : `The same candidate as in turn ${turn.sameAs}: not judged again`,
    turn.seconds === null ? "" : seconds(turn.seconds),
    turn.evaluation && turn.evaluation.verdict !== "passed" ? turn.evaluation.message : "",
  ];
  return (
    <button
      type="button"
      class={`turn-chip${best ? " best" : ""}`}
      aria-current={shown ? "true" : undefined}
      title={title.filter(Boolean).join("\n")}
      onClick={() => bench.selectTurn(turn.number)}
    >
      <span class="turn-number num">{turn.number}</span>
      <SignView sign={sign} word={score === null} />
      {score === null ? null : <span class="num strong">{score.toFixed(0)}</span>}
      {change && Math.round(change.delta) !== 0 ? (
        <span class={`num delta ${change.delta > 0 ? "up" : "down"}`}>
          {change.delta > 0 ? "▲" : "▼"}
          {Math.abs(change.delta).toFixed(0)}
        </span>
      ) : null}
      {best ? <span class="badge">best</span> : null}
    </button>
  );
}

/** The controls of a recording, in a row of their own: a recording is never taken for a live run. */
export function PlaybackBar(): JSX.Element | null {
  const player = bench.player.value;
  return player ? <PlaybackControls player={player} /> : null;
}

function PlaybackControls({ player }: { player: Player }): JSX.Element {
  const { playing, position, duration, speed, label, title } = player.state.value;
  return (
    <div class="playback" role="group" aria-label="Recording">
      <span class="badge recorded">recorded</span>
      <span class="muted ellipsis playback-label" title={label}>
        {title} · {label}
      </span>
      <IconButton
        title={playing ? "Pause (Alt+P)" : "Play (Alt+P)"}
        icon={playing ? "debug-pause" : position >= duration ? "debug-restart" : "play"}
        onClick={() => player.toggle()}
      />
      <IconButton title="Skip to the next turn" icon="debug-step-over" onClick={() => player.skipTurn()} />
      <input
        type="range"
        aria-label="Position in the recording"
        aria-valuetext={`${position.toFixed(1)} of ${duration.toFixed(1)} seconds`}
        min={0}
        max={duration}
        step={0.1}
        value={position}
        onInput={(event) => player.seek(Number(event.currentTarget.value))}
      />
      <span class="num muted playback-time">
        {position.toFixed(1)} / {seconds(duration)}
      </span>
      <button
        type="button"
        class="text-button num"
        title="Speed of the playback"
        aria-label={`Speed ${speed} times`}
        onClick={() => player.setSpeed(SPEEDS[(SPEEDS.indexOf(speed as (typeof SPEEDS)[number]) + 1) % SPEEDS.length] ?? 1)}
      >
        {speed}×
      </button>
      <IconButton title="Skip to the end" icon="debug-continue" onClick={() => player.skipToEnd()} />
      <button type="button" class="icon-button" title="Leave the recording" aria-label="Leave the recording" onClick={() => bench.clearBench()}>
        <Icon name="close" />
      </button>
    </div>
  );
}
