/** The newest revision, edited by hand into the next one. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { CodeView } from "../../editor/monaco";
import * as review from "../../state/review";
import { pushEdit } from "../../state/talk";
import { setEdit, typed } from "../../state/typed";
import { useEditors } from "../editors";
import { Dialog } from "../overlays";
import { IconButton } from "../parts";

export function EditDialog(): JSX.Element | null {
  const base = useRef(review.head.value);
  const editors = useEditors();
  const host = useRef<HTMLDivElement>(null);
  const kept = typed.peek().edit;
  const text = useRef(kept && kept.base === base.current?.id ? kept.text : (base.current?.source ?? ""));
  const changed = useSignal(text.current !== base.current?.source);
  useEffect(() => {
    if (!editors || !host.current || !base.current) return;
    const view: CodeView = new editors.CodeView(host.current, { ariaLabel: "The next revision", readOnly: false, folding: false });
    view.show("edit", text.current, "cuda");
    view.onText = (_key, written) => {
      text.current = written;
      changed.value = written !== base.current?.source;
      if (base.current) setEdit({ base: base.current.id, text: written });
    };
    view.focus();
    return () => view.dispose();
  }, [editors]);
  const from = base.current;
  if (!from) return null;
  const close = () => (review.dialog.value = null);
  const newest = review.head.value;
  return (
    <Dialog label="Edit into a new revision" wide onClose={close}>
      <div class="dialog-header">
        <h2>Edit revision {from.number} into a new one</h2>
        <IconButton title="Close" icon="close" onClick={close} />
      </div>
      {newest && newest.id !== from.id ? (
        <p class="dialog-note tone-warn" role="alert">
          Meanwhile revision {newest.number} has come. Copy what you need, close, and edit that one.
        </p>
      ) : null}
      <div ref={host} class="edit-host" />
      <div class="dialog-form">
        <div class="dialog-buttons">
          <span class="grow muted">It is judged when you save it. Approvals of other code go stale.</span>
          <button type="button" class="secondary" onClick={close}>
            Later
          </button>
          <button
            type="button"
            class="primary"
            disabled={!changed.value || review.sending.value !== null || newest?.id !== from.id}
            onClick={() => void pushEdit(text.current, from.id)}
          >
            Save as a new revision
          </button>
        </div>
      </div>
    </Dialog>
  );
}
