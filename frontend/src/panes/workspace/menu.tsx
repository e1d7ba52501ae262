/** In the title: the workspace that one works in, and what is about to run out there. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { execute } from "../../state/commands";
import { chooseWorkspace, current, tightest, workspaces } from "../../state/workspaces";
import { Icon } from "../parts";
import { NewWorkspace } from "./new";

export function WorkspaceMenu(): JSX.Element | null {
  const here = current.value;
  const making = useSignal(false);
  if (!here) return null;
  return (
    <>
      <details class="menu workspace-menu">
        <summary title="Workspace" aria-label={`Workspace: ${here.name}`}>
          <span class="ellipsis">{here.name}</span>
          <Icon name="chevron-down" />
        </summary>
        <div class="menu-items" onClick={(event) => closeMenu(event.currentTarget)}>
          {(workspaces.value ?? []).map((it) => (
            <button key={it.slug} type="button" aria-current={it.slug === here.slug ? "true" : undefined} onClick={() => chooseWorkspace(it.slug)}>
              <span class="menu-mark" aria-hidden="true">
                {it.slug === here.slug ? "●" : ""}
              </span>
              <span class="grow ellipsis">{it.name}</span>
              <span class="muted">{it.personal ? "your own" : it.role}</span>
            </button>
          ))}
          <div class="menu-rule" />
          <button type="button" onClick={() => execute("workspace")}>
            Members and quotas
          </button>
          <button type="button" onClick={() => (making.value = true)}>
            New workspace…
          </button>
        </div>
      </details>
      {making.value ? <NewWorkspace onClose={() => (making.value = false)} /> : null}
    </>
  );
}

function closeMenu(items: Element): void {
  const menu = items.closest("details");
  if (menu) menu.open = false;
}

/** Before a quota bites, not after. */
export function QuotaNotice(): JSX.Element | null {
  const line = tightest.value;
  if (!line) return null;
  return (
    <button type="button" class={`quota-notice ${line.state === "out" ? "tone-bad" : "tone-warn"}`} title="See what is used" onClick={() => execute("workspace")}>
      <Icon name="warning" />
      <span>
        {line.title}: {line.words}
      </span>
    </button>
  );
}
