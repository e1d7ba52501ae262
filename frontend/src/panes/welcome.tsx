/** The candidate's place while there is no candidate: what can be done, or where the run stands. */
import type { JSX } from "preact";
import { command, execute, keyWords } from "../state/commands";
import { active, openExample } from "../state/documents";
import * as lists from "../state/lists";
import * as bench from "../state/workbench";
import { Elapsed } from "./elapsed";
import { ordinal } from "./explorer";
import { OutcomeCard } from "./outcome";
import { Icon } from "./parts";

export function NothingYet(): JSX.Element {
  const { ended } = bench.run.value;
  if (ended) return <OutcomeCard ended={ended} />;
  if (bench.busy.value) return <OnItsWay />;
  return <Welcome />;
}

function OnItsWay(): JSX.Element {
  const detail = bench.detail.value;
  const { started, stage } = bench.run.value;
  const position = detail?.state === "queued" ? detail.queue_position : null;
  return (
    <div class="empty-state" role="status">
      <div class="progress-line" aria-hidden="true" />
      {bench.loadingRun.value ? (
        <p>Loading</p>
      ) : stage ? (
        <Elapsed stage={stage} />
      ) : position !== null && !started ? (
        <p>
          Queued, {ordinal(position)}
          <span class="muted"> · it starts when {position === 1 ? "a worker is free" : "the runs before it have ended"}</span>
        </p>
      ) : started ? (
        <p>Choosing the first version</p>
      ) : (
        <p>Reading the source</p>
      )}
      <p class="muted">You can close this page; the run goes on and is found again under My runs.</p>
    </div>
  );
}

function Welcome(): JSX.Element {
  const items = lists.examples.value ?? [];
  const recording = items.find((it) => it.kind === "recording");
  const examples = items.filter((it) => it.kind === "example");
  const first = examples.find((it) => /row softmax/i.test(it.title)) ?? examples[0];
  const ready = active.value !== null && !active.value.recorded && active.value.text.trim() !== "";
  const keys = keyWords(command("translate").keys ?? "");
  return (
    <div class="empty-state welcome">
      {ready ? (
        <>
          <p>
            <kbd>{keys}</kbd> translates {active.value?.filename} to CUDA.
          </p>
          <p class="muted">
            Each turn's candidate appears here as it is written, is compiled by nvcc, run, and compared with your program. The
            evidence stands at the right.
          </p>
        </>
      ) : (
        <>
          <p>C or PyTorch at the left becomes verified CUDA here.</p>
          <p class="muted">Nothing is verified by trust: each candidate is compiled, run, and compared with your own program.</p>
        </>
      )}
      <div class="buttons column">
        {ready ? (
          <button type="button" class="primary" onClick={() => execute("translate")}>
            <Icon name="play" /> Translate
          </button>
        ) : null}
        {!ready && first ? (
          <button type="button" class="primary" onClick={() => openExample(first)}>
            <Icon name="go-to-file" /> Open the example “{first.title}”
          </button>
        ) : null}
        {recording ? (
          <button type="button" class="secondary" onClick={() => void bench.playRecording(recording)}>
            <Icon name="play-circle" /> Play a recorded run
          </button>
        ) : null}
      </div>
    </div>
  );
}
