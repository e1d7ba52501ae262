/** The user's sources, one a tab, with everything that goes with them into a run. Kept across reloads. */
import { computed, effect, signal } from "@preact/signals";
import type { ExampleItem, Inputs, InputsInput, RunDetail } from "../generated/events";
import { isRecord } from "../protocol/decode";
import { kindOf, scratchName } from "./languages";
import { load, save } from "./storage";

export interface StartFrom {
  filename: string;
  source: string;
}

export interface SourceDocument {
  id: string;
  filename: string;
  text: string;
  /** Which function or class, where the user had to say. */
  entry: string | null;
  inputs: InputsInput;
  /** The user's own CUDA, which becomes turn 1. */
  startFrom: StartFrom | null;
  /** The gallery's item or the run that this was opened from. */
  origin: string | null;
  /** The text as it was opened, to tell a draft from an untouched example. */
  original: string;
  /** The last run of this document, and the text that it was given. */
  runId: string | null;
  runText: string | null;
  /** A recording's source: shown, not edited. */
  recorded: boolean;
}

const KEY = "documents";

interface Kept {
  documents: SourceDocument[];
  active: string | null;
}

const kept = restore();
export const documents = signal<readonly SourceDocument[]>(kept.documents);
export const activeId = signal<string | null>(kept.active);
export const active = computed(() => documents.value.find((it) => it.id === activeId.value) ?? null);

/** True when drafts could not be kept: the page then says so. */
export const unsaved = signal(false);

/** Writes are put together; `flush` before the page goes. */
export function keepDrafts(delay = 300): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const write = () => {
    timer = null;
    const own = documents.peek().filter((it) => !it.recorded);
    unsaved.value = !save(KEY, { documents: own, active: activeId.peek() } satisfies Kept);
  };
  effect(() => {
    const seen: unknown[] = [documents.value, activeId.value];
    if (seen.length) timer ??= setTimeout(write, delay);
  });
  return () => {
    if (timer !== null) clearTimeout(timer);
    write();
  };
}

function restore(): Kept {
  const raw = load(KEY);
  const rows = isRecord(raw) && Array.isArray(raw.documents) ? (raw.documents as unknown[]) : [];
  const documents = rows.filter(isDocument).map((row) => blank(row));
  const active = isRecord(raw) && typeof raw.active === "string" ? raw.active : null;
  return { documents, active: documents.some((it) => it.id === active) ? active : (documents[0]?.id ?? null) };
}

function isDocument(row: unknown): row is Partial<SourceDocument> & { id: string } {
  return isRecord(row) && typeof row.id === "string" && typeof row.text === "string" && typeof row.filename === "string";
}

/** `crypto.randomUUID` exists only over https and on localhost; a server in a lab may be neither. */
function freshId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function blank(known: Partial<SourceDocument>): SourceDocument {
  return {
    id: freshId(),
    filename: "untitled.c",
    text: "",
    entry: null,
    inputs: {},
    startFrom: null,
    origin: null,
    original: known.text ?? "",
    runId: null,
    runText: null,
    recorded: false,
    ...known,
  };
}

function add(known: Partial<SourceDocument>): SourceDocument {
  const document = blank(known);
  documents.value = [...documents.value.filter((it) => !it.recorded), document];
  activeId.value = document.id;
  return document;
}

/** Goes back to the tab that already holds this origin, so that no draft is opened over. */
function reopen(origin: string): SourceDocument | null {
  const found = documents.value.find((it) => it.origin === origin) ?? null;
  if (found) activeId.value = found.id;
  return found;
}

export function openScratch(): SourceDocument {
  const taken = new Set(documents.value.map((it) => it.filename.replace(/\.(c|py)$/, "")));
  let n = 1;
  while (taken.has(n === 1 ? "untitled" : `untitled-${n}`)) n += 1;
  return add({ filename: `${n === 1 ? "untitled" : `untitled-${n}`}.c` });
}

export function openExample(example: ExampleItem): SourceDocument {
  const origin = `example:${example.id}`;
  return (
    reopen(origin) ??
    add({
      origin,
      filename: example.filename,
      text: example.source,
      entry: example.entry,
      inputs: tidy(example.inputs),
    })
  );
}

export function openFile(filename: string, text: string): SourceDocument {
  return add({ filename, text });
}

/** The tab that started this run, or a new one with the run's own source. */
export function openRunSource(run: RunDetail): SourceDocument {
  const owner = documents.value.find((it) => it.runId === run.id);
  if (owner) {
    activeId.value = owner.id;
    return owner;
  }
  return add({
    origin: `run:${run.id}`,
    filename: run.filename,
    text: run.source,
    entry: run.entry,
    inputs: tidy(run.inputs),
    startFrom: run.start_from === null ? null : { filename: "start.cu", source: run.start_from },
    runId: run.id,
    runText: run.source,
  });
}

export function openRecorded(filename: string, text: string): SourceDocument {
  const document = blank({ filename, text, recorded: true });
  documents.value = [...documents.value.filter((it) => !it.recorded), document];
  activeId.value = document.id;
  return document;
}

/** Takes the tab away and gives back what puts it back, draft and all. */
export function close(id: string): (() => void) | null {
  const index = documents.value.findIndex((it) => it.id === id);
  const closed = documents.value[index];
  if (!closed) return null;
  const rest = documents.value.filter((it) => it.id !== id);
  documents.value = rest;
  if (activeId.value === id) activeId.value = rest[Math.min(index, rest.length - 1)]?.id ?? null;
  return () => {
    documents.value = documents.value.toSpliced(index, 0, closed);
    activeId.value = id;
  };
}

/** The recording's source goes when something else is opened. */
export function dropRecorded(): void {
  if (documents.value.some((it) => it.recorded)) documents.value = documents.value.filter((it) => !it.recorded);
}

/** Back to the text as it was opened. */
export function revert(id: string): void {
  const document = documents.peek().find((it) => it.id === id);
  if (document) setText(id, document.original);
}

export function update(id: string, change: Partial<SourceDocument>): void {
  documents.value = documents.value.map((it) => (it.id === id ? { ...it, ...change } : it));
}

export function setText(id: string, text: string): void {
  const document = documents.peek().find((it) => it.id === id);
  if (!document || document.recorded || document.text === text) return;
  update(id, { text, filename: scratchName(document.filename, text) });
}

/** Changed since it was opened. */
export function isDraft(document: SourceDocument): boolean {
  return !document.recorded && document.text !== document.original;
}

/** The candidate belongs to an older text than the one in the editor. */
export function isStale(document: SourceDocument): boolean {
  return document.runText !== null && document.runText !== document.text;
}

export function kind(document: SourceDocument): "c" | "pytorch" | "cuda" {
  return kindOf(document.filename, document.text);
}

/** Without the fields that say nothing, so that what is sent is what was corrected. */
export function tidy(inputs: Inputs | InputsInput | null): InputsInput {
  if (!inputs) return {};
  const result: InputsInput = {};
  if (inputs.sizes && Object.keys(inputs.sizes).length) result.sizes = { ...inputs.sizes };
  if (inputs.scalars && Object.keys(inputs.scalars).length) result.scalars = { ...inputs.scalars };
  const arrays: NonNullable<InputsInput["arrays"]> = {};
  for (const [name, given] of Object.entries(inputs.arrays ?? {})) {
    const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== ""));
    if (Object.keys(known).length) arrays[name] = known;
  }
  if (Object.keys(arrays).length) result.arrays = arrays;
  if (inputs.tolerance !== null && inputs.tolerance !== undefined) result.tolerance = inputs.tolerance;
  if (inputs.reproducible) result.reproducible = true;
  return result;
}
