/** The page's entry: read what the server wrote into it, put the panes up, listen. */
import "@vscode/codicons/dist/codicon.css";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/panes.css";
import { effect } from "@preact/signals";
import { h, render } from "preact";
import { App } from "./panes/app";
import { editors } from "./panes/editors";
import { online } from "./panes/statusbar";
import { readBootstrap } from "./protocol/bootstrap";
import { keepDrafts } from "./state/documents";
import { keepLayout, systemTheme, theme, type Theme } from "./state/layout";
import { followAddress, loadLists, pageTitle, start, watchRuns } from "./state/workbench";

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
  document.title = pageTitle.value;
});
keepLayout();
const flush = keepDrafts();
window.addEventListener("pagehide", flush);
window.addEventListener("popstate", followAddress);
window.addEventListener("online", () => (online.value = true));
window.addEventListener("offline", () => (online.value = false));

start(readBootstrap(document));
const root = document.getElementById("app") ?? document.body;
root.replaceChildren();
render(h(App, null), root);
void loadLists();
watchRuns();
