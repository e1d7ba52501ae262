/** A comment being written at some lines. */
import type { JSX } from "preact";
import type { Evidence } from "../../generated/events";
import { followCode } from "../../state/review";
import * as review from "../../state/review";
import { postBox } from "../../state/talk";
import { deltaRow, lineWords } from "../../state/threads";
import { changeBox, closeBox, typed } from "../../state/typed";
import { Write } from "./write";

export function BoxView({ boxKey }: { boxKey: string }): JSX.Element | null {
  const box = typed.value.boxes.find((it) => it.key === boxKey);
  if (!box) return null;
  const where = lineWords(box.line, box.endLine);
  const number = review.numberOf(box.revision);
  const onHead = box.revision === review.head.value?.id;
  return (
    <div class="box" role="group" aria-label={`Comment on ${where}`}>
      <div class="box-title muted num">
        {where} of revision {number ?? "?"}
        {onHead ? "" : ", which is not the newest"}
      </div>
      {review.moved.value?.box === box.key ? <CodeMovedStrip boxKey={box.key} /> : null}
      <Write
        label={`Comment on ${where}`}
        body={box.body}
        suggestion={box.suggestion}
        original={box.side === "new" && onHead ? box.quoted : null}
        busy={review.sending.value !== null}
        sendWords="Comment now"
        onChange={(change) => changeBox(box.key, change)}
        onSend={() => void postBox(box, false)}
        onDraft={() => void postBox(box, true)}
        onCancel={() => closeBox(box.key)}
      >
        <EvidencePicker value={box.evidence} onChange={(evidence) => changeBox(box.key, { evidence })} />
      </Write>
    </div>
  );
}

function CodeMovedStrip({ boxKey }: { boxKey: string }): JSX.Element {
  const box = typed.value.boxes.find((it) => it.key === boxKey);
  const place = review.moved.value?.place;
  const number = review.head.value?.number;
  return (
    <div class="moved" role="alert">
      <p>
        The code moved while you wrote: revision {number} is the newest.{" "}
        {place ? `There it is at ${lineWords(place.line, place.end_line)}.` : "There these lines are gone."} What you typed is kept.
      </p>
      <div class="moved-buttons">
        <button type="button" class="primary" onClick={() => void followCode()}>
          Show it on revision {number}
        </button>
        <button type="button" class="secondary" onClick={() => box && void postBox(box, false, true)}>
          Comment all the same
        </button>
      </div>
    </div>
  );
}

/** A number or a check of the newest revision's judgement, to speak of. */
export function EvidencePicker({ value, onChange }: { value: Evidence | null; onChange: (evidence: Evidence | null) => void }): JSX.Element | null {
  const checks = review.head.value?.evaluation?.verification?.checks ?? [];
  const numbers = (review.metrics.value?.new === review.head.value?.id ? (review.metrics.value?.metrics ?? []) : []).map(deltaRow);
  if (!checks.length && !numbers.length) return null;
  const key = value ? `${value.kind}:${value.name}` : "";
  return (
    <label class="evidence-picker">
      <span class="muted">Evidence</span>
      <span class="select bordered">
        <select
          value={key}
          onChange={(event) => {
            const [kind, name] = split(event.currentTarget.value);
            onChange(name ? { kind: kind as Evidence["kind"], name, value: "" } : null);
          }}
        >
          <option value="">none</option>
          <optgroup label="Numbers">
            {numbers.map((it) => (
              <option key={it.name} value={`metric:${it.name}`}>
                {it.title}: {it.new}
              </option>
            ))}
          </optgroup>
          <optgroup label="Checks">
            {checks.map((it) => (
              <option key={it.name} value={`check:${it.name}`}>
                {it.name}: {it.passed ? "passed" : "failed"}
              </option>
            ))}
          </optgroup>
        </select>
      </span>
    </label>
  );
}

function split(text: string): [string, string] {
  const at = text.indexOf(":");
  return at < 0 ? ["", ""] : [text.slice(0, at), text.slice(at + 1)];
}
