/** The page's entry: read what the server wrote into it, put the panes up, listen. */
import "@vscode/codicons/dist/codicon.css";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/panes.css";
import "./styles/review.css";
import "./styles/pages.css";
import { effect } from "@preact/signals";
import { h, render } from "preact";
import { App } from "./panes/app";
import { editors } from "./panes/editors";
import { online } from "./panes/statusbar";
import { readBootstrap } from "./protocol/bootstrap";
import { keepDrafts } from "./state/documents";
import { keepLayout, systemTheme, theme, type Theme } from "./state/layout";
import { askFor } from "./state/ask";
import { loadInbox, setMe as setInboxMe, watchInbox } from "./state/inbox";
import { loadLists } from "./state/lists";
import { followAddress } from "./state/navigate";
import { page } from "./state/page";
import { pageTitle as reviewTitle, setMe as setReviewMe } from "./state/review";
import { keepTyped } from "./state/typed";
import { bootstrap, openRun, pageTitle as benchTitle, start, watchRuns } from "./state/workbench";
import { loadUsage, loadWorkspaces, slug } from "./state/workspaces";

function followSystemTheme(): void {
  const light = matchMedia("(prefers-color-scheme: light)");
  const contrast = matchMedia("(prefers-contrast: more), (forced-colors: active)");
  const update = () => {
    systemTheme.value = contrast.matches ? "high-contrast" : light.matches ? "light" : "dark";
  };
  light.addEventListener("change", update);
  contrast.addEventListener("change", update);
  update();
}

function applyTheme(name: Theme): void {
  document.documentElement.dataset.theme = name;
  editors.peek()?.applyTheme(name);
}

followSystemTheme();
effect(() => applyTheme(theme.value));
effect(() => {
  document.title = page.value.name === "review" ? reviewTitle.value : benchTitle.value;
});
keepLayout();
const flush = keepDrafts();
keepTyped();
window.addEventListener("pagehide", flush);
window.addEventListener("popstate", followAddress);
window.addEventListener("online", () => (online.value = true));
window.addEventListener("offline", () => (online.value = false));

start(readBootstrap(document));
const root = document.getElementById("app") ?? document.body;
root.replaceChildren();
render(h(App, null), root);
const me = bootstrap.peek()?.user.username ?? "";
setInboxMe(me);
setReviewMe(me);
askFor.value = (run) => void openRun(run);
if (page.peek().name !== "bench") followAddress();
// Everything that lists something is of one workspace, and is asked for anew with another.
let watching: ReturnType<typeof watchRuns> | null = null;
void loadWorkspaces().then(() => {
  effect(() => {
    if (slug.value === null) return;
    watching?.close();
    void loadLists();
    void loadInbox();
    void loadUsage();
    watching = watchRuns();
  });
});
watchInbox();
