/** What the user gave: sources in tabs, with their inputs beside them. */
import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { CodeView, Marker } from "../editor/monaco";
import { chooseFile, inputsOpen } from "../state/commands";
import * as docs from "../state/documents";
import { readTextFile } from "../state/files";
import { kindOf, MONACO_LANGUAGE } from "../state/languages";
import { say } from "../state/notices";
import { problems } from "../state/problems";
import * as bench from "../state/workbench";
import { useEditors } from "./editors";
import { InputsPane } from "./inputs";
import { Icon, IconButton, PaneHeader } from "./parts";

export function SourcePane(): JSX.Element {
  const document = docs.active.value;
  const dropping = useSignal(false);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    chooseFile.value = () => picker.current?.click();
  }, []);
  return (
    <section
      class={`pane source-pane${dropping.value ? " dropping" : ""}`}
      aria-label="Source"
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        dropping.value = true;
      }}
      onDragLeave={() => (dropping.value = false)}
      onDrop={(event) => {
        dropping.value = false;
        const files = [...(event.dataTransfer?.files ?? [])];
        if (!files.length) return;
        event.preventDefault();
        event.stopPropagation();
        void openFiles(files);
      }}
    >
      <Tabs />
      {document?.startFrom ? (
        <div class="strip">
          <Icon name="debug-step-into" />
          <span class="grow ellipsis">
            Turn 1 will be your own <strong>{document.startFrom.filename}</strong>
          </span>
          <IconButton title="Do not start from it" icon="close" onClick={() => docs.update(document.id, { startFrom: null })} />
        </div>
      ) : null}
      {document?.entry ? (
        <div class="strip">
          <Icon name="symbol-method" />
          <span class="grow ellipsis">
            Entry: <code>{document.entry}</code>
          </span>
          <IconButton title="Let the entry be found again" icon="close" onClick={() => docs.update(document.id, { entry: null })} />
        </div>
      ) : null}
      {inputsOpen.value && document ? <InputsPane document={document} /> : null}
      <SourceEditor />
      <input
        ref={picker}
        type="file"
        class="visually-hidden"
        tabIndex={-1}
        aria-hidden="true"
        accept=".c,.h,.py,.cu,.cuh,.txt"
        multiple
        onChange={(event) => {
          void openFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      {dropping.value ? <div class="drop-hint">Drop to open: .c, .py, or .cu as a starting point</div> : null}
    </section>
  );
}

/** A .cu opened beside a C or PyTorch source is where its next run starts from. */
export async function openFiles(files: readonly File[]): Promise<void> {
  const limit = bench.bootstrap.value?.options.source_bytes_max ?? 1_000_000;
  for (const file of files) {
    const opened = await readTextFile(file, limit);
    if (!opened.ok) {
      say(opened.why, "error");
      continue;
    }
    const { filename, text } = opened;
    const current = docs.active.value;
    const isCuda = kindOf(filename, text) === "cuda";
    if (isCuda && current && !current.recorded && docs.kind(current) !== "cuda") {
      docs.update(current.id, { startFrom: { filename, source: text } });
      say(`${filename} will be turn 1 of the next run of ${current.filename}.`);
    } else {
      docs.openFile(filename, text);
    }
  }
}

function Tabs(): JSX.Element {
  const list = docs.documents.value;
  const current = docs.active.value;
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    bar.current?.querySelector(".tab.active")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current?.id, list.length, current !== null && docs.isDraft(current)]);
  return (
    <PaneHeader>
      <div class="tabs" role="group" aria-label="Open sources" ref={bar}>
        {list.map((it) => (
          <div key={it.id} class={`tab${it.id === current?.id ? " active" : ""}`}>
            <button
              type="button"
              class="tab-name"
              aria-current={it.id === current?.id ? "true" : undefined}
              title={docs.isDraft(it) ? `${it.filename}, changed; kept in this browser` : it.filename}
              onClick={() => {
                docs.activeId.value = it.id;
                bench.followDocument();
              }}
            >
              <span class="ellipsis">{it.filename}</span>
              {it.recorded ? <span class="badge recorded">recorded</span> : null}
              {docs.isDraft(it) ? <span class="dot" aria-label="changed" /> : null}
            </button>
            <IconButton title={`Close ${it.filename}`} icon="close" onClick={() => bench.closeDocument(it.id)} />
          </div>
        ))}
      </div>
      <span class="grow" />
      {current && !current.recorded ? (
        <button
          type="button"
          class={`text-button${inputsOpen.value ? " active" : ""}`}
          aria-expanded={inputsOpen.value}
          title="Sizes, extents, value ranges and tolerance: inferred, and yours to correct (Ctrl+I)"
          onClick={() => (inputsOpen.value = !inputsOpen.value)}
        >
          Inputs
          {Object.keys(current.inputs).length ? <span class="dot" aria-label="with corrections" /> : null}
        </button>
      ) : null}
    </PaneHeader>
  );
}

function SourceEditor(): JSX.Element {
  const editors = useEditors();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<CodeView | null>(null);
  const ready = useSignal(false);

  useEffect(() => {
    if (!editors || !host.current) return;
    const created = new editors.CodeView(host.current, {
      ariaLabel: "Source: C or PyTorch",
      readOnly: false,
      readOnlyMessage: "A recorded run's source. Open an example or paste your own to edit.",
      placeholder: "Paste C or PyTorch here, drop a file, or open an example at the left.",
    });
    created.onText = (key, text) => docs.setText(key, text);
    created.onCursor = (line, column) => (bench.cursor.value = { line, column, where: "source" });
    view.current = created;
    ready.value = true;
    return () => {
      view.current = null;
      ready.value = false;
      created.dispose();
    };
  }, [editors]);

  useSignalEffect(() => {
    const document = docs.active.value;
    if (!ready.value || !view.current) return;
    view.current.forgetAllBut(new Set(docs.documents.value.map((it) => it.id)));
    if (!document) return;
    const kind = docs.kind(document);
    view.current.show(document.id, document.text, MONACO_LANGUAGE[kind], document.recorded);
    const markers: Marker[] = problems.value.flatMap((it) =>
      it.where === "source" && it.line !== null
        ? [{ severity: it.severity, line: it.line, column: it.column, message: it.hint ? `${it.message}\n${it.hint}` : it.message }]
        : [],
    );
    view.current.setMarkers("kernelwright", markers);
  });

  useSignalEffect(() => {
    const place = bench.reveal.value;
    if (ready.value && place?.where === "source") view.current?.revealLine(place.line, place.column, true);
  });

  return (
    <div class="editor-area">
      <div ref={host} class={`editor-host${docs.active.value ? "" : " hidden"}`} />
      {docs.active.value ? null : <NoSource />}
      {editors || !docs.active.value ? null : <pre class="editor-fallback">{docs.active.value.text}</pre>}
    </div>
  );
}

function NoSource(): JSX.Element {
  return (
    <div class="empty-state">
      <p>No source is open.</p>
      <p class="muted">Open an example at the left, drop a .c or .py file here, or start with an empty one.</p>
      <div class="buttons">
        <button type="button" class="secondary" onClick={() => docs.openScratch()}>
          New source
        </button>
        <button type="button" class="secondary" onClick={() => chooseFile.value?.()}>
          Open a file…
        </button>
      </div>
    </div>
  );
}
