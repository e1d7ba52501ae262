/** Notices stand in a corner until they are read; errors stay, the rest goes by itself. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { announcement, dismiss, notices, type Notice } from "../state/notices";
import { Icon, IconButton } from "./parts";

const READING_TIME = 6_000;

export function Notices(): JSX.Element {
  return (
    <>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
      <div class="notices">
        {notices.value.map((it) => (
          <NoticeView key={it.id} notice={it} />
        ))}
      </div>
    </>
  );
}

function NoticeView({ notice }: { notice: Notice }): JSX.Element {
  useEffect(() => {
    if (notice.tone === "error") return;
    const timer = setTimeout(() => dismiss(notice.id), READING_TIME);
    return () => clearTimeout(timer);
  }, [notice.id]);
  return (
    <div class={`notice ${notice.tone}`} role={notice.tone === "error" ? "alert" : "status"}>
      <Icon name={notice.tone === "error" ? "error" : "info"} />
      <span class="grow">{notice.text}</span>
      {notice.action ? (
        <button
          type="button"
          class="secondary"
          onClick={() => {
            dismiss(notice.id);
            notice.action?.run();
          }}
        >
          {notice.action.title}
        </button>
      ) : null}
      <IconButton title="Dismiss" icon="close" onClick={() => dismiss(notice.id)} />
    </div>
  );
}
