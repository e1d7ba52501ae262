/** One's own API tokens and the browsers one is signed in with. */
import { batch, signal } from "@preact/signals";
import type { ScopeName, SessionInfo, TokenCreated, TokenInfo } from "../generated/events";
import * as rest from "../protocol/workspaces";
import { say, sayError } from "./notices";

export const SCOPES: readonly { scope: ScopeName; may: string }[] = [
  { scope: "read", may: "see runs, reviews and the library" },
  { scope: "runs:write", may: "start, stop and delete runs" },
  { scope: "evaluations:write", may: "have candidates judged" },
  { scope: "reviews:write", may: "ask for reviews, comment, approve" },
  { scope: "workspace:admin", may: "change members, roles and quotas" },
];

export const tokens = signal<readonly TokenInfo[] | null>(null);
export const sessions = signal<readonly SessionInfo[] | null>(null);
/** The new token: shown until it is put away, and never again. */
export const made = signal<TokenCreated | null>(null);
export const failed = signal<string | null>(null);

export async function loadAccount(): Promise<void> {
  failed.value = null;
  try {
    const [mine, browsers] = await Promise.all([rest.listTokens(), rest.listSessions()]);
    batch(() => {
      tokens.value = mine;
      sessions.value = browsers;
    });
  } catch (error) {
    failed.value = error instanceof Error ? error.message : String(error);
  }
}

/** True when it was made. */
export async function makeToken(name: string, scopes: ScopeName[], days: number, workspace: string | null): Promise<boolean> {
  if (!scopes.length) {
    say("Choose what the token may do: at least one scope.", "error");
    return false;
  }
  try {
    const created = await rest.createToken(name, scopes, days, workspace);
    batch(() => {
      made.value = created;
      tokens.value = [created, ...(tokens.value ?? [])];
    });
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

export async function revoke(id: string): Promise<void> {
  try {
    await rest.revokeToken(id);
    if (made.value?.id === id) made.value = null;
    tokens.value = await rest.listTokens();
  } catch (error) {
    sayError(error);
  }
}

export type TokenState = "in force" | "revoked" | "expired";

export function tokenState(token: TokenInfo, now: number): TokenState {
  if (token.revoked_at) return "revoked";
  return Date.parse(token.expires_at) <= now ? "expired" : "in force";
}

export async function signOut(id: string): Promise<void> {
  try {
    await rest.endSession(id);
    sessions.value = (sessions.value ?? []).filter((it) => it.id !== id);
  } catch (error) {
    sayError(error);
  }
}

export async function signOutOthers(): Promise<void> {
  try {
    await rest.endOtherSessions();
    sessions.value = (sessions.value ?? []).filter((it) => it.current);
    say("All other browsers are signed out.");
  } catch (error) {
    sayError(error);
  }
}

/** In this order: each says of itself also what those after it say. */
const BROWSERS = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Chromium/", "Chromium"], ["Safari/", "Safari"]] as const;
const SYSTEMS = [["Windows", "Windows"], ["Android", "Android"], ["iPhone", "iOS"], ["iPad", "iOS"], ["Mac OS", "macOS"], ["Linux", "Linux"]] as const;

/** "Firefox on Linux" out of what a browser says it is; the whole of it where nothing is known. */
export function browserName(agent: string): string {
  const first = (known: readonly (readonly [string, string])[]) => known.find(([mark]) => agent.includes(mark))?.[1] ?? null;
  const name = first(BROWSERS);
  const system = first(SYSTEMS);
  if (!name) return agent || "says nothing of itself";
  return system ? `${name} on ${system}` : name;
}
