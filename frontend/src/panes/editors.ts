/** Monaco comes after the shell, once, for all panes. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type * as Monaco from "../editor/monaco";
import type * as Review from "../editor/review";
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

/** What a review needs on top of it, when the first one is opened. */
export const reviewEditor = signal<typeof Review | null>(null);

export function useReviewEditor(): typeof Review | null {
  const ready = useEditors();
  useEffect(() => {
    if (!ready || reviewEditor.value) return;
    import("../editor/review").then(
      (module) => (reviewEditor.value = module),
      () => say("The editor could not be loaded. Check the connection and reload; what you typed is kept.", "error"),
    );
  }, [ready]);
  return reviewEditor.value;
}

export function useEditors(): Editors | null {
  useEffect(loadEditors, []);
  return editors.value;
}
