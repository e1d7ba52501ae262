/** Where we are, and the two things that matter most: Translate and Stop. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { csrfToken } from "../protocol/api";
import { agentKey, optionKey, optionOf, profileKey, turnsDefault, turnsMax } from "../state/agents";
import { canTranslate, command, execute, keyWords } from "../state/commands";
import { active, isDraft } from "../state/documents";
import * as choice from "../state/choice";
import { page } from "../state/page";
import * as review from "../state/review";
import * as bench from "../state/workbench";
import { Icon } from "./parts";
import { QuotaNotice, WorkspaceMenu } from "./workspace/menu";

export function TitleBar(): JSX.Element {
  return (
    <header class="titlebar">
      <a href="/" class="brand" onClick={(event) => { event.preventDefault(); bench.clearBench(); }}>
        <Mark />
        <span>Kernelwright</span>
      </a>
      <WorkspaceMenu />
      {page.value.name === "bench" ? <Breadcrumb /> : <PageBreadcrumb />}
      <div class="title-actions">
        <QuotaNotice />
        {page.value.name === "bench" ? (
          <>
            <RunButtons />
            <RunOptions />
          </>
        ) : (
          <button type="button" class="secondary" onClick={() => bench.showBench()}>
            <Icon name="arrow-left" /> Workbench
          </button>
        )}
        <UserMenu />
      </div>
    </header>
  );
}

function Breadcrumb(): JSX.Element {
  const document = active.value;
  const id = bench.runId.value;
  const playback = bench.player.value?.state.value;
  const turn = bench.shown.value;
  const limit = bench.run.value.started?.turn_limit;
  return (
    <nav class="breadcrumb" aria-label="Where you are">
      {document ? (
        <>
          <Separator />
          <span class="crumb">
            {document.filename}
            {isDraft(document) ? <span class="dot" title="Changed since it was opened" /> : null}
          </span>
        </>
      ) : null}
      {playback ? (
        <>
          <Separator />
          <span class="crumb">{playback.title}</span>
          <span class="badge recorded">recorded</span>
        </>
      ) : id ? (
        <>
          <Separator />
          <span class="crumb">run {id.slice(0, 6)}</span>
        </>
      ) : null}
      {turn ? (
        <>
          <Separator />
          <span class="crumb strong">
            turn {turn.number}
            {limit ? <span class="muted"> of at most {limit}</span> : null}
          </span>
        </>
      ) : null}
    </nav>
  );
}

function PageBreadcrumb(): JSX.Element {
  const request = review.request.value;
  const name = page.value.name;
  return (
    <nav class="breadcrumb" aria-label="Where you are">
      <Separator />
      <span class="crumb">{name === "review" ? "reviews" : name === "workspace" ? "members and quotas" : "tokens and sessions"}</span>
      {name === "review" && request ? (
        <>
          <Separator />
          <span class="crumb strong">
            #{request.number} {request.title}
          </span>
        </>
      ) : null}
    </nav>
  );
}

function Separator(): JSX.Element {
  return <Icon name="chevron-right" />;
}

/** The product's mark: a warp of lanes, one of them ahead. */
function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <rect x="1" y="6" width="2.4" height="8" rx="0.8" />
      <rect x="4.9" y="4" width="2.4" height="10" rx="0.8" />
      <rect x="8.8" y="2" width="2.4" height="12" rx="0.8" class="ahead" />
      <rect x="12.6" y="5" width="2.4" height="9" rx="0.8" />
    </svg>
  );
}

function RunButtons(): JSX.Element {
  const running = bench.running.value;
  const stopping = bench.stopping.value || bench.detail.value?.state === "cancelling";
  const keys = command("translate").keys ?? "";
  return (
    <>
      <button
        type="button"
        class="primary"
        disabled={!canTranslate.value}
        title={`Translate the source (${keyWords(keys)})`}
        onClick={() => execute("translate")}
      >
        <Icon name="play" />
        <span>{bench.submitting.value ? "Sending" : "Translate"}</span>
        <kbd aria-hidden="true">{keyWords(keys)}</kbd>
      </button>
      <button
        type="button"
        class="secondary"
        disabled={!running || stopping}
        title={`Stop the run and every process started for it (${keyWords("Mod+.")})`}
        onClick={() => execute("stop")}
      >
        <Icon name="debug-stop" />
        <span>{running && stopping ? "Stopping" : "Stop"}</span>
      </button>
    </>
  );
}

function RunOptions(): JSX.Element {
  useEffect(() => void choice.refreshOptions(), []);
  const options = bench.bootstrap.value?.options;
  const settings = bench.settings.value;
  if (!options) return <span />;
  const most = turnsMax(options, settings.policy);
  const turnChoices = [...new Set([1, 2, 4, 8, 12, 16, 24, 32, 48, 100, turnsDefault(options, settings.policy), most, settings.turns])]
    .filter((n) => n <= most)
    .sort((a, b) => a - b);
  return (
    <div class="run-options" role="group" aria-label="Options of the next run">
      <label class="select">
        <span class="visually-hidden">Agent</span>
        <select
          value={agentKey(settings)}
          title="Agent: who writes the candidates"
          onFocus={() => void choice.refreshOptions()}
          onChange={(event) => {
            const value = event.currentTarget.value;
            if (value.startsWith("profile:")) bench.setSettings({ profile: value.slice("profile:".length) });
            const chosen = options.policies.find((it) => optionKey(it) === value);
            if (chosen) choice.chooseAgent(chosen.name, chosen.model);
          }}
        >
          {options.policies.map((it) => (
            <option key={optionKey(it)} value={optionKey(it)} disabled={!it.available} title={it.reason}>
              {it.available ? it.title : `${it.title}: ${it.reason}`}
            </option>
          ))}
          {choice.profiles.value.length ? (
            <optgroup label="Agent profiles">
              {choice.profiles.value.map((it) => (
                <option key={profileKey(it)} value={`profile:${profileKey(it)}`} title={it.description}>
                  {it.name} ({it.workspace}, version {it.version})
                </option>
              ))}
            </optgroup>
          ) : null}
        </select>
      </label>
      {settings.policy === "llm" && !settings.profile ? <ModelLimits /> : null}
      <label class="select">
        <span class="visually-hidden">Backend</span>
        <select
          value={settings.backend}
          title="Backend: where candidates run"
          onChange={(event) => bench.setSettings({ backend: event.currentTarget.value })}
        >
          {options.backends.map((it) => (
            <option key={it} value={it}>
              {it === "auto" ? "auto backend" : it}
            </option>
          ))}
        </select>
      </label>
      {options.targets.length ? (
        <label class="select">
          <span class="visually-hidden">Target architecture</span>
          <select
            value={settings.target}
            title="Target: the architecture compiled and judged for"
            onChange={(event) => bench.setSettings({ target: event.currentTarget.value })}
          >
            {options.targets.map((it) => (
              <option key={it} value={it}>
                {it}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {settings.profile ? null : (
        <label class="select">
          <span class="visually-hidden">Turn budget</span>
          <select
            value={String(settings.turns)}
            title="Budget: at most this many turns"
            onChange={(event) => bench.setSettings({ turns: Number(event.currentTarget.value) })}
          >
            {turnChoices.map((n) => (
              <option key={n} value={String(n)}>
                {n} {n === 1 ? "turn" : "turns"}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

/** How the chosen model is driven, and what bounds a run beside its turns. */
function ModelLimits(): JSX.Element {
  const settings = bench.settings.value;
  const options = bench.bootstrap.value?.options;
  const option = options ? optionOf(options, settings) : undefined;
  const limits = [
    { name: "minutes", title: "Minutes", placeholder: "60", step: "any", usable: true },
    { name: "tokens", title: "Tokens", placeholder: "no limit", step: "1", usable: true },
    { name: "cost", title: "Cost", placeholder: option?.priced ? "no limit" : "no price known", step: "any", usable: option?.priced ?? false },
  ] as const;
  return (
    <details class="menu limits-menu">
      <summary title="Protocol and limits of a run with this model" aria-label="Protocol and limits">
        <Icon name="settings" />
      </summary>
      <div class="menu-items limits">
        <label>
          <span>Protocol</span>
          <select
            value={settings.protocol}
            onChange={(event) => bench.setSettings({ protocol: event.currentTarget.value as typeof settings.protocol })}
          >
            <option value="auto">auto{option?.protocol ? ` (${option.protocol})` : ""}</option>
            <option value="rewrite">rewrite: a whole source per turn</option>
            <option value="tools">tools: tool calls</option>
          </select>
        </label>
        {limits.map(({ name, title, placeholder, step, usable }) => (
          <label key={name}>
            <span>{title}</span>
            <input
              type="number"
              class="num"
              min="0"
              step={step}
              disabled={!usable}
              placeholder={placeholder}
              value={settings[name] ?? ""}
              onChange={(event) => {
                const value = Number(event.currentTarget.value);
                bench.setSettings({ [name]: value > 0 ? value : null });
              }}
            />
          </label>
        ))}
        <p class="muted">Whichever limit is reached first ends the run; the best turn is kept.</p>
      </div>
    </details>
  );
}

function UserMenu(): JSX.Element {
  const user = bench.bootstrap.value?.user;
  return (
    <details class="menu user-menu">
      <summary title="Account" aria-label={`Account of ${user?.username ?? "you"}`}>
        <Icon name="account" />
      </summary>
      <div class="menu-items">
        <div class="menu-heading">{user?.username ?? "Signed in"}</div>
        <button type="button" onClick={() => execute("account")}>
          API tokens and sessions
        </button>
        <button type="button" onClick={() => execute("workspace")}>
          Members and quotas
        </button>
        {user?.is_staff ? <a href="/admin/">Administration</a> : null}
        <a href="/api/v1/docs">API reference</a>
        <form method="post" action="/sign-out">
          <input type="hidden" name="csrfmiddlewaretoken" value={csrfToken()} />
          <button type="submit">Sign out</button>
        </form>
      </div>
    </details>
  );
}
