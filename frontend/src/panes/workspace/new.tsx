/** A new workspace: for a team, or for a project. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { goTo } from "../../state/page";
import { makeWorkspace, slugFor } from "../../state/workspaces";
import { Dialog } from "../overlays";
import { IconButton } from "../parts";

export function NewWorkspace({ onClose }: { onClose: () => void }): JSX.Element {
  const name = useSignal("");
  const slug = useSignal<string | null>(null);
  const busy = useSignal(false);
  const address = slug.value ?? slugFor(name.value);
  return (
    <Dialog label="New workspace" onClose={onClose}>
      <div class="dialog-header">
        <h2>New workspace</h2>
        <IconButton title="Close" icon="close" onClick={onClose} />
      </div>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault();
          busy.value = true;
          void makeWorkspace(name.value.trim(), address).then((made) => {
            busy.value = false;
            if (!made) return;
            onClose();
            goTo({ name: "workspace" });
          });
        }}
      >
        <label>
          Name
          <input required maxLength={200} autoFocus value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} placeholder="Kernel team" />
        </label>
        <label>
          In addresses
          <input
            required
            maxLength={64}
            pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
            title="Small letters, digits and hyphens"
            value={address}
            onInput={(event) => (slug.value = event.currentTarget.value)}
          />
        </label>
        <p class="muted">You become its admin. Invite others afterwards; runs and reviews made in it are seen by all its members.</p>
        <div class="dialog-buttons">
          <button type="button" class="secondary" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value || !name.value.trim()}>
            Make it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
