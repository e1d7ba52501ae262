/** The palette of all actions and the list of keys. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { commands, execute, isEnabled, keyWords, overlay, type Command } from "../state/commands";
import { openExample } from "../state/documents";
import * as lists from "../state/lists";
import * as bench from "../state/workbench";
import { IconButton } from "./parts";

export function Overlays(): JSX.Element | null {
  switch (overlay.value) {
    case "palette":
      return (
        <Dialog label="All actions">
          <Palette />
        </Dialog>
      );
    case "keys":
      return (
        <Dialog label="List of keys">
          <div class="dialog-header">
            <h2>Keys</h2>
            <IconButton title="Close" icon="close" onClick={() => (overlay.value = null)} />
          </div>
          <div class="dialog-body" tabIndex={0}>
            <KeyTable />
          </div>
        </Dialog>
      );
    case null:
      return null;
  }
}

/** Modal by the browser's own means: focus is held and given back. */
export function Dialog({ label, children, onClose = () => (overlay.value = null), wide = false }: {
  label: string;
  children: ComponentChildren;
  onClose?: () => void;
  wide?: boolean;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key can come, so that nothing typed is lost.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`overlay${wide ? " wide" : ""}`}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      {children}
    </dialog>
  );
}

interface Entry {
  id: string;
  group: string;
  title: string;
  keys: string;
  enabled: boolean;
  run: () => void;
}

function entries(): Entry[] {
  const own = commands.map((it): Entry => ({
    id: it.id,
    group: it.group,
    title: it.title,
    keys: it.keys ? keyWords(it.keys) : "",
    enabled: isEnabled(it),
    run: () => execute(it.id),
  }));
  const examples = (lists.examples.value ?? []).map((it): Entry => ({
    id: `example.${it.id}`,
    group: "Example",
    title: it.kind === "recording" ? `Play: ${it.title}` : it.title,
    keys: "",
    enabled: true,
    run: () => {
      if (it.kind === "recording") void bench.playRecording(it);
      else openExample(it);
    },
  }));
  // What cannot be done now stays findable, after what can.
  return [...own, ...examples].sort((a, b) => Number(b.enabled) - Number(a.enabled));
}

function Palette(): JSX.Element {
  const query = useSignal("");
  const chosen = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = entries().filter((it) => {
    const text = `${it.group} ${it.title}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const index = Math.min(chosen.value, fitting.length - 1);
  const run = (entry: Entry | undefined) => {
    if (!entry?.enabled) return;
    overlay.value = null;
    // After the dialog has given the focus back, so that the action may take it.
    setTimeout(entry.run);
  };
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [index]);
  return (
    <>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="Action"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={fitting[index] ? `palette-${index}` : undefined}
        placeholder="Type what you want to do"
        autoFocus
        spellcheck={false}
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={(event) => {
          const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (by) chosen.value = (index + by + fitting.length) % Math.max(fitting.length, 1);
          else if (event.key === "Enter") run(fitting[index]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" class="palette-list" role="listbox" aria-label="Actions" ref={list} tabIndex={-1}>
        {fitting.map((it, at) => (
          <li
            key={it.id}
            id={`palette-${at}`}
            role="option"
            aria-selected={at === index}
            aria-disabled={!it.enabled}
            onMouseMove={(event) => {
              // A list that moves under a resting pointer is no choice of the user's.
              if (event.movementX || event.movementY) chosen.value = at;
            }}
            onClick={() => run(it)}
          >
            <span class="muted palette-group">{it.group}</span>
            <span class="grow">{it.title}</span>
            {it.keys ? <kbd>{it.keys}</kbd> : null}
          </li>
        ))}
        {fitting.length ? null : (
          <li role="option" aria-selected="false" aria-disabled="true" class="muted">
            Nothing is called that.
          </li>
        )}
      </ul>
    </>
  );
}

const GROUPS: readonly Command["group"][] = ["Run", "Candidate", "Go", "Review", "Source", "Recording", "View", "Help"];

export function KeyTable(): JSX.Element {
  return (
    <table class="keys">
      {GROUPS.map((group) => {
        const rows = commands.filter((it) => it.group === group && it.keys);
        return rows.length ? (
          <tbody key={group}>
            <tr>
              <th scope="rowgroup" colSpan={2}>
                {group}
              </th>
            </tr>
            {rows.map((it) => (
              <tr key={it.id}>
                <td>{it.title}</td>
                <td class="key-cell">
                  <kbd>{keyWords(it.keys ?? "")}</kbd>
                </td>
              </tr>
            ))}
          </tbody>
        ) : null;
      })}
    </table>
  );
}
