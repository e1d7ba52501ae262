/** One workspace: who is in it and as what, who is invited, and what is left of its quotas. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { InvitationInfo, Member, RoleName } from "../../generated/events";
import { ago } from "../../state/format";
import { bootstrap } from "../../state/workbench";
import * as ws from "../../state/workspaces";
import { fieldText, Icon, IconButton } from "../parts";
import { Copyable } from "./copyable";
import { NewWorkspace } from "./new";

const making = signal(false);
const confirming = signal<number | null>(null);

export function WorkspacePage(): JSX.Element {
  const slug = ws.slug.value;
  useEffect(() => void ws.loadWorkspace(), [slug]);
  const detail = ws.detail.value;
  return (
    <main class="center page-main" aria-label="Workspace">
      <div class="page-scroll" tabIndex={0}>
        {ws.failed.value ? (
          <div class="page-failed">
            <p>{ws.failed.value}</p>
            <button type="button" class="secondary" onClick={() => void ws.loadWorkspace()}>
              Try again
            </button>
          </div>
        ) : null}
        {detail ? (
          <>
            <header class="page-header">
              <h1>{detail.name}</h1>
              <span class="muted">
                {detail.personal ? "your own workspace" : `you are ${detail.role}`} · <code>{detail.slug}</code>
              </span>
            </header>
            <Members />
            <Invitations />
            <Usage />
          </>
        ) : ws.failed.value ? null : (
          <p class="muted">Loading</p>
        )}
      </div>
      {making.value ? <NewWorkspace onClose={() => (making.value = false)} /> : null}
    </main>
  );
}

function Members(): JSX.Element {
  const members = ws.members.value ?? [];
  const mayEdit = ws.may("member.edit");
  const personal = ws.detail.value?.personal ?? false;
  return (
    <section aria-labelledby="members-title">
      <h2 id="members-title">Members</h2>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Role</th>
            <th scope="col">Since</th>
            <th scope="col">
              <span class="visually-hidden">Remove</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {members.map((it) => (
            <MemberRow key={it.user} member={it} mayEdit={mayEdit && !personal} />
          ))}
        </tbody>
      </table>
      {personal ? (
        <div class="page-note">
          <p>This workspace is yours alone. To work with others and review each other's kernels, make one for the team.</p>
          <button type="button" class="secondary" onClick={() => (making.value = true)}>
            New workspace…
          </button>
        </div>
      ) : (
        <ul class="page-note roles">
          {ws.ROLES.map((it) => (
            <li key={it.role}>
              <strong>{it.role}</strong> {it.may}
            </li>
          ))}
          <li>Each may what those before it may.</li>
        </ul>
      )}
    </section>
  );
}

function MemberRow({ member, mayEdit }: { member: Member; mayEdit: boolean }): JSX.Element {
  const me = member.user === bootstrap.value?.user.id;
  const mayRemove = mayEdit || (me && !ws.detail.value?.personal);
  return (
    <tr>
      <th scope="row">
        {member.username}
        {me ? <span class="muted"> (you)</span> : null}
      </th>
      <td>
        {mayEdit ? (
          <RoleSelect label={`Role of ${member.username}`} value={member.role} onChange={(role) => void ws.changeRole(member.user, role)} />
        ) : (
          member.role
        )}
      </td>
      <td class="muted num">{ago(member.since, Date.now())}</td>
      <td class="actions">
        {!mayRemove ? null : confirming.value === member.user ? (
          <button type="button" class="danger" onBlur={() => (confirming.value = null)} onClick={() => void ws.dropMember(member.user)}>
            {me ? "Leave" : "Remove"}
          </button>
        ) : (
          <IconButton title={me ? "Leave the workspace…" : `Remove ${member.username}…`} icon="close" onClick={() => (confirming.value = member.user)} />
        )}
      </td>
    </tr>
  );
}

function RoleSelect({ label, value, onChange, name }: { label: string; value: RoleName; onChange?: (role: RoleName) => void; name?: string }): JSX.Element {
  return (
    <span class="select bordered">
      <select
        aria-label={label}
        {...(name ? { name } : {})}
        {...(onChange ? { value } : {})}
        onChange={(event) => onChange?.(event.currentTarget.value as RoleName)}
      >
        {ws.ROLES.map((it) => (
          <option key={it.role} value={it.role} selected={it.role === value}>
            {it.role}
          </option>
        ))}
      </select>
    </span>
  );
}

function Invitations(): JSX.Element | null {
  if (ws.detail.value?.personal) return null;
  const list = ws.invitations.value;
  if (list === null) {
    return (
      <section aria-labelledby="invitations-title">
        <h2 id="invitations-title">Invitations</h2>
        <p class="muted">Admins of this workspace invite. Ask one of them to let somebody in.</p>
      </section>
    );
  }
  const made = ws.invited.value;
  const open = list.filter((it) => it.state === "open");
  return (
    <section aria-labelledby="invitations-title">
      <h2 id="invitations-title">Invitations</h2>
      <form
        class="row-form"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          void ws.inviteSomebody(fieldText(form, "role") as RoleName, Number(fieldText(form, "days")), fieldText(form, "email"));
        }}
      >
        <label>
          As <RoleSelect label="Role of who is invited" value="reviewer" name="role" />
        </label>
        <label>
          for{" "}
          <span class="select bordered">
            <select name="days" aria-label="How long the link works">
              <option value="7">7 days</option>
              <option value="1">1 day</option>
              <option value="30">30 days</option>
            </select>
          </span>
        </label>
        <input type="email" name="email" placeholder="mail address (optional)" aria-label="Mail address, optional" />
        <button type="submit" class="primary">
          Invite
        </button>
      </form>
      {made ? <Invited /> : null}
      {open.length ? (
        <ul class="plain-list" aria-label="Open invitations">
          {open.map((it) => (
            <InvitationRow key={it.id} invitation={it} />
          ))}
        </ul>
      ) : (
        <p class="muted">Nobody is invited at the moment.</p>
      )}
    </section>
  );
}

function Invited(): JSX.Element {
  const made = ws.invited.value;
  if (!made?.link) return <p role="status">The invitation was sent to {made?.email}.</p>;
  return (
    <div class="secret" role="status">
      <p>
        {made.mail === "failed"
          ? "The mail could not be sent. Hand this link over yourself; it works once."
          : made.mail === "not_configured"
            ? "This server sends no mail. Hand this link over yourself; it works once."
            : "Hand this link over. It works once, and it is not shown again."}
      </p>
      <Copyable text={made.link} label="Link of the invitation" />
    </div>
  );
}

function InvitationRow({ invitation: it }: { invitation: InvitationInfo }): JSX.Element {
  return (
    <li>
      <span class="grow">
        {it.email || "by link"} as <strong>{it.role}</strong>
        <span class="muted">
          {" "}
          · by {it.invited_by ?? "somebody who left"} · until {new Date(it.expires_at).toLocaleDateString("en", { day: "numeric", month: "short" })}
        </span>
      </span>
      <button type="button" class="secondary" onClick={() => void ws.takeBack(it.id)}>
        Take back
      </button>
    </li>
  );
}

function Usage(): JSX.Element | null {
  const report = ws.usage.value;
  if (!report) return null;
  const lines = report.quotas.map(ws.quotaLine);
  return (
    <section aria-labelledby="usage-title">
      <h2 id="usage-title">Used and left</h2>
      {lines.length ? (
        <ul class="quotas">
          {lines.map((it) => (
            <li key={it.title}>
              <span class="quota-title">{it.title}</span>
              <span class="bar" aria-hidden="true">
                {it.share === null ? null : <span class={`quota-${it.state}`} style={{ width: `${it.share * 100}%` }} />}
              </span>
              <span class="num quota-words">
                {it.words}
                {it.state === "out" ? (
                  <span class="tone-bad">
                    <Icon name="error" /> used up
                  </span>
                ) : it.state === "close" ? (
                  <span class="tone-warn">
                    <Icon name="warning" /> nearly used up
                  </span>
                ) : null}
              </span>
              <span class="muted num">{it.resets ? `again from ${new Date(it.resets).toLocaleDateString("en", { day: "numeric", month: "short" })}` : "free again as runs end"}</span>
            </li>
          ))}
        </ul>
      ) : (
        <p class="muted">No quota is set here.</p>
      )}
    </section>
  );
}
