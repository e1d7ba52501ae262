/** Monaco comes after the shell, once, for all panes. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type * as Monaco from "../editor/monaco";
import { say } from "../state/notices";
import { theme } from "../state/layout";

type Editors = typeof Monaco;

export const editors = signal<Editors | null>(null);
let asked = false;

export function loadEditors(): void {
  if (asked) return;
  asked = true;
  import("../editor/monaco").then(
    (module) => {
      module.applyTheme(theme.value);
      editors.value = module;
    },
    () => {
      asked = false;
      say("The editor could not be loaded. Check the connection.", "error", { title: "Try again", run: loadEditors });
    },
  );
}

export function useEditors(): Editors | null {
  useEffect(loadEditors, []);
  return editors.value;
}
