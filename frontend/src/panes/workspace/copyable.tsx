/** Something that is shown once: easy to take, hard to take half. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Icon } from "../parts";

export function Copyable({ text, label }: { text: string; label: string }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const state = useSignal<"" | "copied" | "refused">("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      state.value = "copied";
    } catch {
      field.current?.select();
      state.value = "refused";
    }
  };
  return (
    <div class="copyable">
      <input ref={field} readOnly aria-label={label} value={text} onFocus={(event) => event.currentTarget.select()} />
      <button type="button" class="secondary" onClick={() => void copy()}>
        <Icon name="copy" /> Copy
      </button>
      <span role="status" class="muted">
        {state.value === "copied" ? "Copied." : state.value === "refused" ? "It is selected: copy it with Ctrl+C." : ""}
      </span>
    </div>
  );
}
