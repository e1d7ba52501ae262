/** How a run ended when it did not end well: what happened, where, and the next step as a button. */
import type { JSX } from "preact";
import type { Problem, RunEnded } from "../generated/events";
import { inputsOpen } from "../state/commands";
import { active, isStale, update, type SourceDocument } from "../state/documents";
import { plural } from "../state/format";
import { asksHere, CHOOSES_ENTRY } from "../state/problems";
import { endingSign, type Sign } from "../state/verdicts";
import * as bench from "../state/workbench";
import { fieldText, Icon, SignView } from "./parts";

/** Beside a candidate: one line. Without one the whole card stands in the candidate's place (`welcome.tsx`). */
export function OutcomeStrip(): JSX.Element | null {
  const { ended, turns } = bench.run.value;
  if (!ended || !turns.length) return null;
  const sign = endingSign(ended.reason, ended.verdict);
  if (sign.tone === "good") {
    if (!active.value || !isStale(active.value) || active.value.runId !== bench.runId.value) return null;
    return (
      <div class="strip">
        <Icon name="history" />
        <span class="grow">The source has changed since this run.</span>
      </div>
    );
  }
  return (
    <div class={`strip tone-${sign.tone}`} role="status">
      <SignView sign={sign} />
      <span class="grow">{ended.message}</span>
      <AgainButton />
    </div>
  );
}

export function OutcomeCard({ ended }: { ended: RunEnded }): JSX.Element {
  const document = active.value;
  const sign = endingSign(ended.reason, ended.verdict);
  const { problem } = ended;
  return (
    <div class="outcome" role="status">
      <h2>{title(ended, sign)}</h2>
      <p class="outcome-message">{problem?.message ?? ended.message}</p>
      {problem?.line ? (
        <button type="button" class="link" onClick={() => bench.show("source", problem.line ?? 1, problem.column ?? 1)}>
          <Icon name="go-to-file" /> {placeName(problem.file, document)}:{problem.line}
          {problem.column ? `:${problem.column}` : ""}
        </button>
      ) : null}
      {problem?.hint && !asksHere(problem) ? <p class="outcome-hint">{problem.hint}</p> : null}
      {problem?.choices.length && document ? <Choices problem={problem} document={document} /> : null}
      <div class="buttons">
        <AgainButton />
      </div>
    </div>
  );
}

function placeName(file: string, document: SourceDocument | null): string {
  return file === "" ? (document?.filename ?? "source") : file;
}

function title(ended: RunEnded, sign: Sign): string {
  switch (ended.reason) {
    case "bad_input":
      return "The source needs a change";
    case "unsupported":
      return "This cannot be translated yet";
    case "cancelled":
      return "Stopped";
    case "interrupted":
      return "The server went away during this run";
    case "internal_error":
      return "Kernelwright's own fault";
    default:
      return sign.word.charAt(0).toUpperCase() + sign.word.slice(1);
  }
}

/** Run again where the same source may do better now; after a bad input it would only say the same. */
function AgainButton(): JSX.Element | null {
  const { ended, turns } = bench.run.value;
  if (!bench.runId.value || !ended || ended.reason === "bad_input" || ended.reason === "unsupported") return null;
  const judged = turns.filter((turn) => turn.evaluation).length;
  return (
    <>
      {bench.detail.value?.resumable ? (
        <button
          type="button"
          class="primary"
          title={judged ? `Goes on after turn ${judged}, in a run of its own` : "Begins again: no turn was judged"}
          onClick={() => void bench.resume()}
        >
          <Icon name="debug-continue" /> Resume
        </button>
      ) : null}
      <button type="button" class="secondary" onClick={() => void bench.runAgain()}>
        <Icon name="debug-restart" /> Run again
        {turns.length ? <span class="visually-hidden"> ({plural(turns.length, "turn")} kept)</span> : null}
      </button>
    </>
  );
}

/** Kinds whose choices are arrays to size. */
const ASKS_EXTENT = new Set(["unknown_extent", "reference_faults"]);

function Choices({ problem, document }: { problem: Problem; document: SourceDocument }): JSX.Element {
  if (ASKS_EXTENT.has(problem.kind)) return <ExtentForm problem={problem} document={document} />;
  return (
    <div class="buttons" role="group" aria-label="Choices">
      {problem.choices.map((choice) =>
        CHOOSES_ENTRY.has(problem.kind) ? (
          <button
            key={choice}
            type="button"
            class="primary"
            onClick={() => {
              update(document.id, { entry: choice });
              void bench.translate();
            }}
          >
            Translate <code>{choice}</code>
          </button>
        ) : (
          <code key={choice}>{choice}</code>
        ),
      )}
      {CHOOSES_ENTRY.has(problem.kind) ? null : (
        <button type="button" class="secondary" onClick={() => (inputsOpen.value = true)}>
          Open the inputs
        </button>
      )}
    </div>
  );
}

function ExtentForm({ problem, document }: { problem: Problem; document: SourceDocument }): JSX.Element {
  return (
    <form
      class="extent-form"
      onSubmit={(event) => {
        event.preventDefault();
        const form = event.currentTarget;
        const arrays = { ...document.inputs.arrays };
        for (const name of problem.choices) {
          const extent = fieldText(form, name);
          if (extent) arrays[name] = { ...arrays[name], extent };
        }
        update(document.id, { inputs: { ...document.inputs, arrays } });
        void bench.translate();
      }}
    >
      {problem.choices.map((name, index) => (
        <label key={name}>
          <code>{name}</code> has
          <input
            name={name}
            required
            autoFocus={index === 0}
            spellcheck={false}
            placeholder="n * m"
            defaultValue={document.inputs.arrays?.[name]?.extent ?? ""}
          />
          elements
        </label>
      ))}
      <button type="submit" class="primary">
        Use and translate
      </button>
    </form>
  );
}
