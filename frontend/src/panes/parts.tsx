/** The few building blocks that every pane uses. */
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { command, execute, isEnabled, keyWords } from "../state/commands";
import type { Sign } from "../state/verdicts";

export function Icon({ name }: { name: string }): JSX.Element {
  return <i class={`codicon codicon-${name}`} aria-hidden="true" />;
}

/** A verdict or state: shape and word, and colour on top. */
export function SignView({ sign, word = true }: { sign: Sign; word?: boolean }): JSX.Element {
  return (
    <span class={`sign tone-${sign.tone}`}>
      <span class="shape" aria-hidden="true">
        {sign.shape}
      </span>
      <span class={word ? "" : "visually-hidden"}>{sign.word}</span>
    </span>
  );
}

interface ButtonProps {
  title: string;
  icon: string;
  onClick: () => void;
  disabled?: boolean;
  pressed?: boolean;
  label?: string;
}

export function IconButton({ title, icon, onClick, disabled = false, pressed, label }: ButtonProps): JSX.Element {
  return (
    <button
      type="button"
      class={`icon-button${label ? " with-label" : ""}`}
      title={title}
      aria-label={label ? undefined : title}
      {...(pressed === undefined ? {} : { "aria-pressed": pressed })}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
      {label ? <span>{label}</span> : null}
    </button>
  );
}

/** A button for one of the page's commands: its name, its key and whether it can be used come from there. */
export function CommandButton({
  id,
  icon,
  label,
  pressed,
}: {
  id: string;
  icon: string;
  label?: string;
  pressed?: boolean;
}): JSX.Element {
  const it = command(id);
  return (
    <IconButton
      title={it.keys ? `${it.title} (${keyWords(it.keys)})` : it.title}
      icon={icon}
      disabled={!isEnabled(it)}
      onClick={() => execute(id)}
      {...(label ? { label } : {})}
      {...(pressed === undefined ? {} : { pressed })}
    />
  );
}

interface SplitterProps {
  label: string;
  orientation: "vertical" | "horizontal";
  value: number;
  min: number;
  max: number;
  step: number;
  /** Value change per pixel of movement to the right or down; negative where the pane lies after the bar. */
  perPixel: () => number;
  onChange: (value: number) => void;
  onToggle?: () => void;
}

/** A bar between two panes: drag it, or focus it and use arrows, Home, End, and Enter to close the pane. */
export function Splitter(props: SplitterProps): JSX.Element {
  const { label, orientation, value, min, max, step, perPixel, onChange, onToggle } = props;
  const drag = useRef<{ start: number; value: number; perPixel: number } | null>(null);
  const clamp = (next: number) => Math.min(max, Math.max(min, next));
  const place = (event: PointerEvent) => (orientation === "vertical" ? event.clientX : event.clientY);
  const scale = step < 1 ? 100 : 1;

  const onKeyDown = (event: KeyboardEvent) => {
    const direction = Math.sign(perPixel());
    const moves: Record<string, number> = {
      ArrowLeft: value - direction * step,
      ArrowUp: value - direction * step,
      ArrowRight: value + direction * step,
      ArrowDown: value + direction * step,
      Home: min,
      End: max,
    };
    const next = moves[event.key];
    if (event.key === "Enter" && onToggle) onToggle();
    else if (next !== undefined && !event.altKey) onChange(clamp(next));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class={`splitter ${orientation}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={orientation}
      aria-valuenow={Math.round(value * scale)}
      aria-valuemin={Math.round(min * scale)}
      aria-valuemax={Math.round(max * scale)}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        drag.current = { start: place(event), value, perPixel: perPixel() };
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
      }}
      onPointerMove={(event) => {
        if (!drag.current) return;
        onChange(clamp(drag.current.value + (place(event) - drag.current.start) * drag.current.perPixel));
      }}
      onPointerUp={() => (drag.current = null)}
      onDblClick={onToggle}
    />
  );
}

export function PaneHeader({ children, label }: { children: ComponentChildren; label?: string }): JSX.Element {
  return (
    <div class="pane-header" {...(label ? { role: "toolbar", "aria-label": label } : {})}>
      {children}
    </div>
  );
}

/** What was typed into a form's text field. */
export function fieldText(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === "string" ? value.trim() : "";
}

/** A named section of a side pane that can be folded away. */
export function Section({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <details class="section" open>
      <summary>
        <Icon name="chevron-right" />
        <span class="section-title">{title}</span>
        <span class="section-aside">{aside}</span>
      </summary>
      {children}
    </details>
  );
}

/** Text in which "line 14" is a link: the evidence is one click from the line it speaks of. */
export function WithLines({ text, onLine }: { text: string; onLine: (line: number) => void }): JSX.Element {
  const parts = text.split(/\b(lines? \d+)\b/i);
  return (
    <>
      {parts.map((part, index) =>
        index % 2 ? (
          <button key={index} type="button" class="link inline" onClick={() => onLine(Number(/\d+/.exec(part)?.[0]))}>
            {part}
          </button>
        ) : (
          part
        ),
      )}
    </>
  );
}
