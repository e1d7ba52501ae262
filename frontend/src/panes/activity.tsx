/** The bar at the far left: which side pane is open. */
import type { JSX } from "preact";
import { keyWords, showsSide } from "../state/commands";
import { toggleSide, type SideView } from "../state/layout";
import { bootstrap } from "../state/workbench";
import { Icon } from "./parts";

const VIEWS: { view: SideView; icon: string; title: string; keys?: string }[] = [
  { view: "explorer", icon: "files", title: "Explorer", keys: "Mod+B" },
  { view: "help", icon: "question", title: "Help" },
];

export function ActivityBar(): JSX.Element {
  return (
    <nav class="activity" aria-label="Views">
      {VIEWS.map((it) => (
        <ActivityButton key={it.view} {...it} />
      ))}
      <span class="grow" />
      {bootstrap.value?.user.is_staff ? (
        <a class="activity-button" href="/admin/" title="Administration" aria-label="Administration">
          <Icon name="server-process" />
        </a>
      ) : null}
      <ActivityButton view="settings" icon="settings-gear" title="Settings and theme" />
    </nav>
  );
}

function ActivityButton({ view, icon, title, keys }: (typeof VIEWS)[number]): JSX.Element {
  return (
    <button
      type="button"
      class="activity-button"
      title={keys ? `${title} (${keyWords(keys)})` : title}
      aria-label={title}
      aria-pressed={showsSide(view)}
      onClick={() => toggleSide(view)}
    >
      <Icon name={icon} />
    </button>
  );
}
