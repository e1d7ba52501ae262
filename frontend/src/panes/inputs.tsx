/** The inputs block: what was inferred, and the user's corrections to it. */
import type { ComponentChildren, JSX } from "preact";
import type { ArrayInputInput, InputsInput, Parameter, TaskSpec } from "../generated/events";
import { tidy, update, type SourceDocument } from "../state/documents";
import { say } from "../state/notices";
import { run } from "../state/workbench";
import { inputsToml } from "../state/toml";
import { fieldText, IconButton } from "./parts";

const DISTRIBUTIONS = ["normal", "uniform", "heavy_tail", "large_offset", "cancellation", "special"] as const;
const ACCESS = ["read", "write", "read_write"] as const;

/** What the last run inferred, if it was a run of this very source. */
function inferredFor(document: SourceDocument): TaskSpec | null {
  const task = run.value.started?.task;
  return task && document.runText !== null && task.source === document.runText ? task : null;
}

export function InputsPane({ document }: { document: SourceDocument }): JSX.Element {
  const task = inferredFor(document);
  const { inputs } = document;
  const set = (change: InputsInput) => update(document.id, { inputs: tidy({ ...inputs, ...change }) });
  const setNumber = (block: "sizes" | "scalars", name: string, value: number | null) => {
    const entries = Object.entries({ ...inputs[block], [name]: value }).filter(([, it]) => it !== null);
    set({ [block]: Object.fromEntries(entries) as Record<string, number> });
  };
  const setArray = (name: string, change: ArrayInputInput) =>
    set({ arrays: { ...inputs.arrays, [name]: { ...inputs.arrays?.[name], ...change } } });

  const known = new Set(task?.parameters.map((it) => it.name));
  const sizes = rows(task, (it) => it.kind === "scalar" && it.role === "size", inputs.sizes, known);
  const scalars = rows(task, (it) => it.kind === "scalar" && it.role !== "size", inputs.scalars, known);
  const arrays = rows(task, (it) => it.kind === "array", inputs.arrays, known);

  return (
    <div class="inputs" role="group" aria-label="Inputs">
      {task ? null : (
        <p class="muted">
          Sizes, extents and access are inferred when the source is translated, and then shown here. What you write is used as it
          is.
        </p>
      )}
      {sizes.map(([name, parameter]) => (
        <ParameterRow key={name} name={name} parameter={parameter} note="size">
          <Field label="size">
            <NumberField
              label={`Size ${name}`}
              value={inputs.sizes?.[name]}
              inferred={task?.sizes[name]}
              whole
              onChange={(value) => setNumber("sizes", name, value)}
            />
          </Field>
        </ParameterRow>
      ))}
      {scalars.map(([name, parameter]) => (
        <ParameterRow key={name} name={name} parameter={parameter} note="value">
          <Field label="value">
            <NumberField
              label={`Value of ${name}`}
              value={inputs.scalars?.[name]}
              onChange={(value) => setNumber("scalars", name, value)}
            />
          </Field>
        </ParameterRow>
      ))}
      {arrays.map(([name, parameter]) => (
        <ArrayRow key={name} name={name} parameter={parameter} given={inputs.arrays?.[name] ?? {}} set={(it) => setArray(name, it)} />
      ))}
      <AddRow
        known={new Set([...sizes, ...scalars, ...arrays].map(([name]) => name))}
        add={(kind, name) => {
          if (kind === "array") setArray(name, { distribution: "normal" });
          else setNumber(kind === "size" ? "sizes" : "scalars", name, 1);
        }}
      />
      <div class="inputs-more">
        <label>
          Tolerance
          <NumberField label="Tolerance" value={inputs.tolerance ?? undefined} placeholder="by the rule" onChange={(value) => set({ tolerance: value })} />
        </label>
        <label title="Two runs of a candidate must agree bit for bit">
          <input
            type="checkbox"
            checked={inputs.reproducible ?? false}
            onChange={(event) => set({ reproducible: event.currentTarget.checked })}
          />
          Bit-equal repeats
        </label>
        <span class="grow" />
        <IconButton
          title="Copy as TOML, for kernelwright translate --inputs"
          icon="copy"
          label="TOML"
          onClick={() => void copyToml(inputs)}
        />
        <IconButton
          title="Forget the corrections"
          icon="discard"
          disabled={!Object.keys(inputs).length}
          onClick={() => update(document.id, { inputs: {} })}
        />
      </div>
      {task?.notes.length ? (
        <ul class="notes">
          {task.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

type Row = [name: string, parameter: Parameter | null];

function rows(
  task: TaskSpec | null,
  wanted: (parameter: Parameter) => boolean,
  given: Record<string, unknown> | undefined,
  known: ReadonlySet<string>,
): Row[] {
  const inferred: Row[] = (task?.parameters ?? []).filter(wanted).map((it) => [it.name, it]);
  const own: Row[] = Object.keys(given ?? {})
    .filter((name) => !known.has(name))
    .map((name) => [name, null]);
  return [...inferred, ...own];
}

function ParameterRow({
  name,
  parameter,
  note,
  children,
}: {
  name: string;
  parameter: Parameter | null;
  note: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="parameter" role="group" aria-label={name}>
      <span class="parameter-name" title={parameter ? `${parameter.c_type} ${name}` : note}>
        <code>{name}</code> <span class="muted">{parameter?.dtype ?? note}</span>
      </span>
      <span class="parameter-fields">{children}</span>
    </div>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  return (
    <label class="field">
      <span class="muted">{label}</span>
      {children}
    </label>
  );
}

function ArrayRow({
  name,
  parameter,
  given,
  set,
}: {
  name: string;
  parameter: Parameter | null;
  given: ArrayInputInput;
  set: (change: ArrayInputInput) => void;
}): JSX.Element {
  return (
    <ParameterRow name={name} parameter={parameter} note="array">
      <Field label="elements">
        <input
          class="extent"
          aria-label={`Elements of ${name}`}
          spellcheck={false}
          value={given.extent ?? ""}
          placeholder={parameter?.extent ?? "n * m"}
          onChange={(event) => set({ extent: event.currentTarget.value.trim() || null })}
        />
      </Field>
      <Field label="access">
        <select
          aria-label={`Access of ${name}`}
          value={given.access ?? ""}
          onChange={(event) => set({ access: (event.currentTarget.value || null) as ArrayInputInput["access"] & {} })}
        >
          <option value="">{parameter ? parameter.access.replace("_", " + ") : "inferred"}</option>
          {ACCESS.map((it) => (
            <option key={it} value={it}>
              {it.replace("_", " + ")}
            </option>
          ))}
        </select>
      </Field>
      <Field label="from">
        <NumberField label={`Lowest value of ${name}`} value={given.low ?? undefined} onChange={(value) => set({ low: value })} />
      </Field>
      <Field label="to">
        <NumberField label={`Highest value of ${name}`} value={given.high ?? undefined} onChange={(value) => set({ high: value })} />
      </Field>
      <Field label="values">
        <select
          aria-label={`Distribution of ${name}`}
          value={given.distribution ?? ""}
          onChange={(event) => set({ distribution: (event.currentTarget.value || null) as ArrayInputInput["distribution"] & {} })}
        >
          <option value="">several kinds</option>
          {DISTRIBUTIONS.map((it) => (
            <option key={it} value={it}>
              {it.replace("_", " ")}
            </option>
          ))}
        </select>
      </Field>
    </ParameterRow>
  );
}

function NumberField({
  label,
  value,
  inferred,
  placeholder,
  whole = false,
  onChange,
}: {
  label: string;
  value: number | undefined;
  inferred?: number | undefined;
  placeholder?: string;
  whole?: boolean;
  onChange: (value: number | null) => void;
}): JSX.Element {
  return (
    <input
      class="num"
      inputMode={whole ? "numeric" : "decimal"}
      aria-label={label}
      value={value ?? ""}
      placeholder={inferred === undefined ? (placeholder ?? "") : String(inferred)}
      onChange={(event) => {
        const text = event.currentTarget.value.trim();
        const number = Number(text);
        if (text && (!Number.isFinite(number) || (whole && !Number.isInteger(number)))) {
          say(`${label}: “${text}” is not a ${whole ? "whole " : ""}number.`, "error");
          event.currentTarget.value = value === undefined ? "" : String(value);
          return;
        }
        onChange(text ? number : null);
      }}
    />
  );
}

function AddRow({
  known,
  add,
}: {
  known: ReadonlySet<string>;
  add: (kind: "size" | "value" | "array", name: string) => void;
}): JSX.Element {
  const submit = (form: HTMLFormElement) => {
    const name = fieldText(form, "name");
    if (!/^[A-Za-z_]\w*$/.test(name)) say("A parameter's name is letters, digits and _.", "error");
    else if (known.has(name)) say(`${name} is in the table already.`);
    else {
      add(fieldText(form, "kind") as "size" | "value" | "array", name);
      form.reset();
    }
  };
  return (
    <form
      class="add-row"
      onSubmit={(event) => {
        event.preventDefault();
        submit(event.currentTarget);
      }}
    >
      <input name="name" aria-label="Name of a further parameter" placeholder="name" spellcheck={false} />
      <select name="kind" aria-label="Kind of the parameter">
        <option value="array">array</option>
        <option value="size">size</option>
        <option value="value">value</option>
      </select>
      <button type="submit" class="secondary">
        Add
      </button>
    </form>
  );
}

async function copyToml(inputs: InputsInput): Promise<void> {
  try {
    await navigator.clipboard.writeText(inputsToml(inputs));
    say("Inputs copied as TOML.");
  } catch {
    say("The browser did not allow copying.", "error");
  }
}
