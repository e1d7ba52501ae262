/** The workspace that one works in, who else does, and what is left of its quotas. */
import { batch, computed, signal } from "@preact/signals";
import type {
  InvitationCreated,
  InvitationInfo,
  Member,
  QuotaUseInfo,
  RoleName,
  UsageReport,
  WorkspaceDetail,
  WorkspaceSummary,
} from "../generated/events";
import * as rest from "../protocol/workspaces";
import { compact, count, seconds } from "./format";
import { say, sayError } from "./notices";
import { load, save } from "./storage";

export const ROLES: readonly { role: RoleName; may: string }[] = [
  { role: "viewer", may: "sees everything" },
  { role: "author", may: "starts runs and asks for reviews" },
  { role: "reviewer", may: "reviews and approves" },
  { role: "maintainer", may: "merges into the library" },
  { role: "admin", may: "invites and sets roles" },
];

export const workspaces = signal<readonly WorkspaceSummary[] | null>(null);
const kept = load("workspace");
/** Null: one's own, whatever it is called. */
const chosen = signal<string | null>(typeof kept === "string" ? kept : null);
export const current = computed<WorkspaceSummary | null>(() => {
  const all = workspaces.value;
  return all?.find((it) => it.slug === chosen.value) ?? all?.find((it) => it.personal) ?? all?.[0] ?? null;
});
export const slug = computed<string | null>(() => (workspaces.value ? (current.value?.slug ?? null) : chosen.value));

export async function loadWorkspaces(): Promise<void> {
  try {
    workspaces.value = await rest.listWorkspaces();
  } catch (error) {
    sayError(error, () => void loadWorkspaces());
  }
}

export function chooseWorkspace(wanted: string): void {
  save("workspace", wanted);
  batch(() => {
    chosen.value = wanted;
    forget();
  });
  say(`Now in ${current.value?.name ?? wanted}. New runs and reviews belong to it.`);
}

/** True when it was made; then it is the one that is worked in. */
export async function makeWorkspace(name: string, wanted: string): Promise<boolean> {
  try {
    const made = await rest.createWorkspace(wanted, name);
    workspaces.value = [...(workspaces.value ?? []), made];
    chooseWorkspace(made.slug);
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

/** "Kernel team" -> "kernel-team": a proposal that can be changed. */
export function slugFor(name: string): string {
  const plain = name.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}

/* One workspace: what its page shows. */

export const detail = signal<WorkspaceDetail | null>(null);
export const members = signal<readonly Member[] | null>(null);
/** Null: not known, or not for this role. */
export const invitations = signal<readonly InvitationInfo[] | null>(null);
export const usage = signal<UsageReport | null>(null);
/** The link of the newest invitation: it cannot be had again. */
export const invited = signal<InvitationCreated | null>(null);
export const failed = signal<string | null>(null);

function forget(): void {
  detail.value = null;
  members.value = null;
  invitations.value = null;
  usage.value = null;
  invited.value = null;
  failed.value = null;
}

export function may(action: string): boolean {
  return detail.value?.actions.includes(action) ?? false;
}

export async function loadWorkspace(): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  failed.value = null;
  try {
    const found = await rest.getWorkspace(wanted);
    const [people, use, open] = await Promise.all([
      rest.listMembers(wanted),
      rest.getUsage(wanted),
      found.actions.includes("invitation.view") ? rest.listInvitations(wanted) : null,
    ]);
    if (slug.value !== wanted) return;
    batch(() => {
      detail.value = found;
      members.value = people;
      usage.value = use;
      invitations.value = open;
    });
  } catch (error) {
    failed.value = error instanceof Error ? error.message : String(error);
  }
}

export async function loadUsage(): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  try {
    const found = await rest.getUsage(wanted);
    if (slug.value === wanted) usage.value = found;
  } catch {
    // Whoever starts a run over a quota is told so by the server.
  }
}

export async function changeRole(user: number, role: RoleName): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  try {
    const changed = await rest.setRole(wanted, user, role);
    members.value = (members.value ?? []).map((it) => (it.user === user ? changed : it));
  } catch (error) {
    members.value = members.value ? [...members.value] : null; // the select goes back to what is so
    sayError(error);
  }
}

export async function dropMember(user: number): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  try {
    await rest.removeMember(wanted, user);
    members.value = (members.value ?? []).filter((it) => it.user !== user);
  } catch (error) {
    sayError(error);
  }
}

export async function inviteSomebody(role: RoleName, days: number, email: string): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  try {
    const made = await rest.invite(wanted, role, days, email);
    batch(() => {
      invited.value = made;
      invitations.value = [made, ...(invitations.value ?? [])];
    });
  } catch (error) {
    sayError(error);
  }
}

export async function takeBack(id: string): Promise<void> {
  const wanted = slug.value;
  if (!wanted) return;
  try {
    await rest.revokeInvitation(wanted, id);
    if (invited.value?.id === id) invited.value = null;
    invitations.value = await rest.listInvitations(wanted);
  } catch (error) {
    sayError(error);
  }
}

/* Quotas, said before they bite. */

export interface QuotaLine {
  title: string;
  words: string;
  /** Of the limit, 0..1; null where there is none. */
  share: number | null;
  state: "free" | "close" | "out";
  resets: string | null;
}

const TITLES: Record<string, string> = {
  runs_at_once: "Runs at once",
  gpu_seconds: "GPU time",
  model_tokens: "Model tokens",
};
const WHOSE: Record<string, string> = { workspace: "the workspace", member: "you, here", user: "you, everywhere" };

/** The share of a limit from which on it is said. */
export const CLOSE = 0.8;

export function quotaLine(quota: QuotaUseInfo): QuotaLine {
  const amount = (value: number) =>
    quota.kind === "gpu_seconds" ? seconds(value) : quota.kind === "model_tokens" ? compact(value) : count(value);
  const { limit, used } = quota;
  const share = limit === null ? null : limit === 0 ? 1 : Math.min(used / limit, 1);
  return {
    title: `${TITLES[quota.kind] ?? quota.kind.replaceAll("_", " ")}, ${WHOSE[quota.of] ?? quota.of}`,
    words: limit === null ? `${amount(used)}, no limit` : `${amount(used)} of ${amount(limit)}`,
    share,
    state: limit === null ? "free" : used >= limit ? "out" : used >= CLOSE * limit ? "close" : "free",
    resets: quota.resets_at,
  };
}

/** The one that is nearest to its end, where one is near. */
export const tightest = computed<QuotaLine | null>(() => {
  const lines = (usage.value?.quotas ?? []).map(quotaLine).filter((it) => it.state !== "free");
  return lines.reduce<QuotaLine | null>((worst, it) => (worst && (worst.share ?? 0) >= (it.share ?? 0) ? worst : it), null);
});

