/** The choice of who writes the candidates of the next run, and what it is called. */
import { computed, signal } from "@preact/signals";
import type { ProfileVersion } from "../generated/events";
import * as api from "../protocol/api";
import { optionOf, profileKey, turnsDefault, turnsMax } from "./agents";
import { say } from "./notices";
import { bootstrap, detail, player, run, runId, setSettings, settings } from "./workbench";

/** Who writes the candidates: of the run on the bench, else of the next one. */
export const agentTitle = computed(() => {
  const of = runId.value !== null && detail.value ? detail.value : runId.value === null && player.value === null ? settings.value : null;
  if (of === null) return run.value.started?.policy ?? "";
  const named = of === detail.value ? detail.value.profile : settings.value.profile;
  if (named) return `${named}${of.model && of === detail.value ? ` · ${of.model}` : ""}`;
  const option = bootstrap.value ? optionOf(bootstrap.value.options, of) : undefined;
  const protocol = of === detail.value && detail.value.protocol ? ` · ${detail.value.protocol}` : "";
  return `${option?.title ?? (of.model || of.policy)}${protocol}`;
});

/** Another agent brings its own number of turns, unless another one was chosen by hand. */
export function chooseAgent(policy: string, model: string): void {
  const options = bootstrap.value?.options;
  const before = settings.value;
  if (!options) return;
  const turns = before.turns === turnsDefault(options, before.policy) ? turnsDefault(options, policy) : before.turns;
  setSettings({ profile: "", policy, model, turns: Math.min(turns, turnsMax(options, policy)) });
}

export const profiles = signal<readonly ProfileVersion[]>([]);

/** Which agents there are may change while the page is open. */
export async function refreshOptions(): Promise<void> {
  try {
    profiles.value = await api.listProfiles();
    if (settings.value.profile && !profiles.value.some((it) => profileKey(it) === settings.value.profile)) {
      setSettings({ profile: "" });
      say("The chosen agent profile is not there any more.");
    }
    const { options } = await api.getSession();
    if (bootstrap.value) bootstrap.value = { ...bootstrap.value, options };
  } catch {
    // The list is only a little old.
  }
}
