/** REST of workspaces and of one's own account. */
import type {
  InvitationCreated,
  InvitationInfo,
  InvitationList,
  Member,
  MemberList,
  RoleName,
  ScopeName,
  SessionInfo,
  SessionList,
  TokenCreated,
  TokenInfo,
  TokenList,
  UsageReport,
  WorkspaceDetail,
  WorkspaceList,
  WorkspaceSummary,
} from "../generated/events";
import { call } from "./api";

const of = (slug: string, rest = "") => `workspaces/${encodeURIComponent(slug)}${rest}`;

export async function listWorkspaces(): Promise<WorkspaceSummary[]> {
  return ((await call("GET", "workspaces")) as WorkspaceList).results;
}

export async function createWorkspace(slug: string, name: string): Promise<WorkspaceDetail> {
  return (await call("POST", "workspaces", { slug, name })) as WorkspaceDetail;
}

export async function getWorkspace(slug: string): Promise<WorkspaceDetail> {
  return (await call("GET", of(slug))) as WorkspaceDetail;
}

export async function listMembers(slug: string): Promise<Member[]> {
  return ((await call("GET", of(slug, "/members"))) as MemberList).results;
}

export async function setRole(slug: string, user: number, role: RoleName): Promise<Member> {
  return (await call("PATCH", of(slug, `/members/${user}`), { role })) as Member;
}

export async function removeMember(slug: string, user: number): Promise<void> {
  await call("DELETE", of(slug, `/members/${user}`));
}

export async function listInvitations(slug: string): Promise<InvitationInfo[]> {
  return ((await call("GET", of(slug, "/invitations"))) as InvitationList).results;
}

/** The answer has the link, this once. */
export async function invite(slug: string, role: RoleName, days: number, email: string): Promise<InvitationCreated> {
  return (await call("POST", of(slug, "/invitations"), { role, days, email })) as InvitationCreated;
}

export async function revokeInvitation(slug: string, id: string): Promise<void> {
  await call("DELETE", of(slug, `/invitations/${encodeURIComponent(id)}`));
}

export async function getUsage(slug: string): Promise<UsageReport> {
  return (await call("GET", of(slug, "/usage"))) as UsageReport;
}

export async function listTokens(): Promise<TokenInfo[]> {
  return ((await call("GET", "tokens")) as TokenList).results;
}

/** The answer has the token, this once. */
export async function createToken(name: string, scopes: ScopeName[], days: number, workspace: string | null): Promise<TokenCreated> {
  return (await call("POST", "tokens", { name, scopes, days, workspace })) as TokenCreated;
}

export async function revokeToken(id: string): Promise<void> {
  await call("DELETE", `tokens/${encodeURIComponent(id)}`);
}

export async function listSessions(): Promise<SessionInfo[]> {
  return ((await call("GET", "me/sessions")) as SessionList).results;
}

export async function endSession(id: string): Promise<void> {
  await call("DELETE", `me/sessions/${encodeURIComponent(id)}`);
}

export async function endOtherSessions(): Promise<void> {
  await call("DELETE", "me/sessions");
}
