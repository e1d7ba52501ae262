/** The bar at the far left: which side pane is open. */
import type { JSX } from "preact";
import { execute, keyWords, showsSide } from "../state/commands";
import { plural } from "../state/format";
import { waitingCount } from "../state/inbox";
import { toggleSide, type SideView } from "../state/layout";
import { page } from "../state/page";
import { bootstrap } from "../state/workbench";
import { Icon } from "./parts";

interface View {
  view: SideView;
  icon: string;
  title: string;
  keys?: string;
  count?: () => number;
}

const VIEWS: View[] = [
  { view: "explorer", icon: "files", title: "Explorer", keys: "Mod+B" },
  { view: "reviews", icon: "git-pull-request", title: "Reviews", keys: "Alt+R", count: () => waitingCount.value },
  { view: "help", icon: "question", title: "Help" },
];

export function ActivityBar(): JSX.Element {
  return (
    <nav class="activity" aria-label="Views">
      {VIEWS.map((it) => (
        <ActivityButton key={it.view} {...it} />
      ))}
      <span class="grow" />
      <button
        type="button"
        class="activity-button"
        title="Workspace: members, invitations, quotas"
        aria-label="Workspace"
        aria-pressed={page.value.name === "workspace"}
        onClick={() => execute("workspace")}
      >
        <Icon name="organization" />
      </button>
      {bootstrap.value?.user.is_staff ? (
        <a class="activity-button" href="/admin/" title="Administration" aria-label="Administration">
          <Icon name="server-process" />
        </a>
      ) : null}
      <ActivityButton view="settings" icon="settings-gear" title="Settings and theme" />
    </nav>
  );
}

function ActivityButton({ view, icon, title, keys, count }: View): JSX.Element {
  const waiting = count?.() ?? 0;
  return (
    <button
      type="button"
      class="activity-button"
      title={keys ? `${title} (${keyWords(keys)})` : title}
      aria-label={waiting ? `${title}, ${plural(waiting, "waits", "wait")} for you` : title}
      aria-pressed={showsSide(view)}
      onClick={() => toggleSide(view)}
    >
      <Icon name={icon} />
      {waiting ? (
        <span class="count num" aria-hidden="true">
          {waiting}
        </span>
      ) : null}
    </button>
  );
}
