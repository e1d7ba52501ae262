/** One's own API tokens and the browsers that are signed in. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ScopeName, SessionInfo, TokenInfo } from "../../generated/events";
import * as account from "../../state/account";
import { ago } from "../../state/format";
import { workspaces } from "../../state/workspaces";
import { fieldText, IconButton } from "../parts";
import { Copyable } from "./copyable";

const confirming = signal<string | null>(null);

export function AccountPage(): JSX.Element {
  useEffect(() => void account.loadAccount(), []);
  return (
    <main class="center page-main" aria-label="API tokens and sessions">
      <div class="page-scroll" tabIndex={0}>
        {account.failed.value ? (
          <div class="page-failed">
            <p>{account.failed.value}</p>
            <button type="button" class="secondary" onClick={() => void account.loadAccount()}>
              Try again
            </button>
          </div>
        ) : null}
        <Tokens />
        <Sessions />
      </div>
    </main>
  );
}

function Tokens(): JSX.Element {
  const list = account.tokens.value;
  const made = account.made.value;
  return (
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">API tokens</h2>
      <p class="muted">
        For the command line, CI and other programs. A token acts as you, within its scopes. <a href="/api/v1/docs">API reference</a>
      </p>
      <NewToken />
      {made ? (
        <div class="secret" role="status">
          <div class="secret-line">
            <p class="grow">Your new token “{made.name}”. Copy it now: it is not shown again.</p>
            <IconButton title="Put the token away" icon="close" onClick={() => (account.made.value = null)} />
          </div>
          <Copyable text={made.token} label="The new token" />
        </div>
      ) : null}
      {list === null ? null : list.length ? (
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Begins with</th>
              <th scope="col">May</th>
              <th scope="col">Where</th>
              <th scope="col">Until</th>
              <th scope="col">Last used</th>
              <th scope="col">
                <span class="visually-hidden">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.map((it) => (
              <TokenRow key={it.id} token={it} />
            ))}
          </tbody>
        </table>
      ) : (
        <p class="muted">No token yet. Make one above, and give it to a program as “Authorization: Bearer …”.</p>
      )}
    </section>
  );
}

function NewToken(): JSX.Element {
  return (
    <form
      class="token-form"
      onSubmit={(event) => {
        event.preventDefault();
        const form = event.currentTarget;
        const scopes = new FormData(form).getAll("scope").map(String) as ScopeName[];
        void account.makeToken(fieldText(form, "name"), scopes, Number(fieldText(form, "days")), fieldText(form, "workspace") || null).then((done) => {
          if (done) form.reset();
        });
      }}
    >
      <div class="row-form">
        <input name="name" required maxLength={100} placeholder="Name: what it is for" aria-label="Name of the token" />
        <label>
          for{" "}
          <span class="select bordered">
            <select name="days" aria-label="How long the token works">
              <option value="90">90 days</option>
              <option value="7">7 days</option>
              <option value="30">30 days</option>
              <option value="366">a year</option>
            </select>
          </span>
        </label>
        <label>
          in{" "}
          <span class="select bordered">
            <select name="workspace" aria-label="Where the token works">
              <option value="">all my workspaces</option>
              {(workspaces.value ?? []).map((it) => (
                <option key={it.slug} value={it.slug}>
                  {it.name}
                </option>
              ))}
            </select>
          </span>
        </label>
        <button type="submit" class="primary">
          Make a token
        </button>
      </div>
      <fieldset class="scopes">
        <legend class="visually-hidden">What the token may do</legend>
        {account.SCOPES.map((it) => (
          <label key={it.scope}>
            <input type="checkbox" name="scope" value={it.scope} defaultChecked={it.scope === "read"} />
            <code>{it.scope}</code> <span class="muted">{it.may}</span>
          </label>
        ))}
      </fieldset>
    </form>
  );
}

const day = (iso: string) => new Date(iso).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });

function TokenRow({ token }: { token: TokenInfo }): JSX.Element {
  const state = account.tokenState(token, Date.now());
  return (
    <tr class={state === "in force" ? "" : "ended"}>
      <th scope="row">{token.name}</th>
      <td>
        <code>{token.prefix}…</code>
      </td>
      <td>{token.scopes.join(", ")}</td>
      <td>{token.workspace ?? "everywhere"}</td>
      <td class="num">{state === "in force" ? day(token.expires_at) : state}</td>
      <td class="num">{token.last_used_at ? ago(token.last_used_at, Date.now()) : "never"}</td>
      <td class="actions">
        {state !== "in force" ? null : confirming.value === token.id ? (
          <button type="button" class="danger" onBlur={() => (confirming.value = null)} onClick={() => void account.revoke(token.id)}>
            Revoke
          </button>
        ) : (
          <IconButton title={`Revoke ${token.name}…`} icon="trash" onClick={() => (confirming.value = token.id)} />
        )}
      </td>
    </tr>
  );
}

function Sessions(): JSX.Element {
  const list = account.sessions.value;
  return (
    <section aria-labelledby="sessions-title">
      <h2 id="sessions-title">Signed in</h2>
      <ul class="plain-list" aria-label="Browsers">
        {(list ?? []).map((it) => (
          <SessionRow key={it.id} session={it} />
        ))}
      </ul>
      {list && list.length > 1 ? (
        <button type="button" class="secondary" onClick={() => void account.signOutOthers()}>
          Sign all others out
        </button>
      ) : null}
    </section>
  );
}

function SessionRow({ session: it }: { session: SessionInfo }): JSX.Element {
  return (
    <li>
      <span class="grow" title={it.agent}>
        {account.browserName(it.agent)}
        <span class="muted">
          {" "}
          · {it.address} · last seen {ago(it.last_seen_at, Date.now())}
        </span>
      </span>
      {it.current ? (
        <span class="badge">this browser</span>
      ) : (
        <button type="button" class="secondary" onClick={() => void account.signOut(it.id)}>
          Sign out
        </button>
      )}
    </li>
  );
}
