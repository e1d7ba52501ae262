/** Where something is written: a text, perhaps with the lines as they should read, and who gets it when. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isMac } from "../../state/commands";
import { Icon } from "../parts";

interface WriteProps {
  label: string;
  body: string;
  suggestion: string | null;
  /** Null: no change can be suggested here. */
  original: string | null;
  busy: boolean;
  /** What sending at once is called; keeping it for the review stands beside it where `onDraft` is given. */
  sendWords: string;
  focus?: boolean;
  onChange: (change: { body?: string; suggestion?: string | null }) => void;
  onSend: () => void;
  onDraft?: () => void;
  onCancel: () => void;
  children?: ComponentChildren;
}

const SEND_KEY = isMac ? "⌘⏎" : "Ctrl+Enter";

export function Write(props: WriteProps): JSX.Element {
  const { label, body, suggestion, original, busy, sendWords, focus = true, onChange, onSend, onDraft, onCancel, children } = props;
  const text = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (focus) text.current?.focus({ preventScroll: true });
  }, []);
  const ready = !busy && (body.trim() !== "" || suggestion !== null);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (isMac ? event.metaKey : event.ctrlKey)) {
      event.preventDefault();
      if (!ready) return;
      if (onDraft && !event.shiftKey) onDraft();
      else onSend();
    } else if (event.key === "Escape" && !body.trim() && suggestion === null) {
      event.preventDefault();
      event.stopPropagation();
      onCancel();
    }
  };
  return (
    <div class="write" onKeyDown={onKeyDown}>
      <textarea
        ref={text}
        rows={Math.min(12, Math.max(2, body.split("\n").length))}
        aria-label={label}
        placeholder="Markdown; @name tells somebody"
        value={body}
        onInput={(event) => onChange({ body: event.currentTarget.value })}
      />
      {suggestion === null ? null : (
        <label class="write-suggestion">
          <span class="muted">The lines should read</span>
          <textarea
            class="code"
            rows={Math.min(16, Math.max(1, suggestion.split("\n").length))}
            spellcheck={false}
            wrap="off"
            aria-label="Suggested lines"
            value={suggestion}
            onInput={(event) => onChange({ suggestion: event.currentTarget.value })}
          />
        </label>
      )}
      {children}
      <div class="write-buttons">
        {original === null ? null : suggestion === null ? (
          <button type="button" class="text-action" onClick={() => onChange({ suggestion: original })}>
            <Icon name="edit" /> Suggest a change
          </button>
        ) : (
          <button type="button" class="text-action" onClick={() => onChange({ suggestion: null })}>
            <Icon name="discard" /> No suggestion
          </button>
        )}
        <span class="grow" />
        <button type="button" class="secondary" onClick={onCancel}>
          Cancel
        </button>
        {onDraft ? (
          <>
            <button type="button" class="secondary" disabled={!ready} title={`${SEND_KEY} with Shift`} onClick={onSend}>
              {sendWords}
            </button>
            <button type="button" class="primary" disabled={!ready} title={`Only you see it until you submit the review (${SEND_KEY})`} onClick={onDraft}>
              Add to review
            </button>
          </>
        ) : (
          <button type="button" class="primary" disabled={!ready} title={SEND_KEY} onClick={onSend}>
            {sendWords}
          </button>
        )}
      </div>
    </div>
  );
}
