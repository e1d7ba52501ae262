/** REST of review requests, their revisions and what is said of them. */
import type {
  AgentAsked,
  CodeMoved,
  CommentCreate,
  CommentPatch,
  ReviewComment,
  ReviewRequestCreate,
  ReviewRequestDetail,
  ReviewRequestPage,
  ReviewRequestPatch,
  ReviewSubmission,
  ReviewSubmissionList,
  ReviewThread,
  ReviewThreadList,
  ReviewVerdict,
  Revision,
  RevisionDiff,
  ThreadCreate,
} from "../generated/events";
import { ApiError, call, query, sameOrigin } from "./api";

const of = (id: string, rest = "") => `review-requests/${encodeURIComponent(id)}${rest}`;
const thread = (id: string, rest: string) => `threads/${encodeURIComponent(id)}${rest}`;
const comment = (id: string) => `comments/${encodeURIComponent(id)}`;

export async function listRequests(workspace: string | null, more: Record<string, string> = {}): Promise<ReviewRequestPage> {
  return (await call("GET", `review-requests${query({ workspace, ...more })}`)) as ReviewRequestPage;
}

/** `address` is the `next` of an earlier page. */
export async function nextRequests(address: string): Promise<ReviewRequestPage> {
  return (await call("GET", sameOrigin(address))) as ReviewRequestPage;
}

/** What waits on the one who asks, in all workspaces. */
export async function inbox(): Promise<ReviewRequestPage> {
  return (await call("GET", "inbox")) as ReviewRequestPage;
}

export async function askForReview(wanted: ReviewRequestCreate): Promise<ReviewRequestDetail> {
  return (await call("POST", "review-requests", wanted)) as ReviewRequestDetail;
}

export async function getRequest(id: string): Promise<ReviewRequestDetail> {
  return (await call("GET", of(id))) as ReviewRequestDetail;
}

export async function changeRequest(id: string, version: number, change: ReviewRequestPatch): Promise<ReviewRequestDetail> {
  return (await call("PATCH", of(id), change, { "If-Match": `"${version}"` })) as ReviewRequestDetail;
}

export async function closeRequest(id: string): Promise<void> {
  await call("POST", of(id, "/close"), {});
}

export async function reopenRequest(id: string): Promise<void> {
  await call("POST", of(id, "/reopen"), {});
}

/** `head`: the one that was seen; 409 when that is another by now. */
export async function mergeRequest(id: string, head: string): Promise<void> {
  await call("POST", of(id, "/merge"), { revision: head });
}

export async function getRevision(id: string): Promise<Revision> {
  return (await call("GET", `revisions/${encodeURIComponent(id)}`)) as Revision;
}

export async function pushSource(id: string, base: string, source: string): Promise<Revision> {
  return (await call("POST", of(id, "/revisions"), { base_revision: base, source })) as Revision;
}

export async function diff(id: string, from: string | null, to: string, whitespace: "show" | "ignore"): Promise<RevisionDiff> {
  return (await call("GET", of(id, `/diff${query({ from, to, whitespace })}`))) as RevisionDiff;
}

export async function listThreads(id: string): Promise<ReviewThread[]> {
  const all: ReviewThread[] = [];
  let address: string | null = of(id, "/threads");
  while (address) {
    const page = (await call("GET", address)) as ReviewThreadList;
    all.push(...page.results);
    address = page.next ? sameOrigin(page.next) : null;
  }
  return all;
}

export async function startThread(id: string, wanted: ThreadCreate): Promise<ReviewThread> {
  return (await call("POST", of(id, "/threads"), wanted)) as ReviewThread;
}

export async function reply(id: string, wanted: CommentCreate): Promise<ReviewComment> {
  return (await call("POST", thread(id, "/comments"), wanted)) as ReviewComment;
}

export async function setResolved(id: string, resolved: boolean): Promise<void> {
  await call("POST", thread(id, resolved ? "/resolve" : "/reopen"), {});
}

export async function changeComment(id: string, change: CommentPatch): Promise<void> {
  await call("PATCH", comment(id), change);
}

export async function deleteComment(id: string): Promise<void> {
  await call("DELETE", comment(id));
}

export async function sendToAgent(id: string, turns: number | null): Promise<AgentAsked> {
  return (await call("POST", thread(id, "/send-to-agent"), turns === null ? {} : { turns })) as AgentAsked;
}

export async function applySuggestions(id: string, comments: string[]): Promise<Revision> {
  return (await call("POST", of(id, "/suggestions/apply"), { comments })) as Revision;
}

export async function submit(id: string, verdict: ReviewVerdict, body: string, revision: string): Promise<ReviewSubmission> {
  return (await call("POST", of(id, "/submissions"), { verdict, body, revision })) as ReviewSubmission;
}

export async function listSubmissions(id: string): Promise<ReviewSubmission[]> {
  return ((await call("GET", of(id, "/submissions"))) as ReviewSubmissionList).results;
}

/** Null for every other failure. The code on which something was said is not the newest any more. */
export function codeMoved(error: unknown): CodeMoved | null {
  if (!(error instanceof ApiError) || !error.problem?.type.endsWith("code-moved")) return null;
  return error.problem.code_moved;
}
