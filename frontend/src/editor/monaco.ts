/** The only door to Monaco: three kinds of view, in terms that the panes understand. Loaded after the shell. */
import "monaco-editor/features/register.all";
import "monaco-editor/languages/definitions/cpp/register";
import "monaco-editor/languages/definitions/python/register";
import { conf, language } from "monaco-editor/languages/definitions/cpp/cpp";
import * as monaco from "monaco-editor/editor";
import EditorWorker from "monaco-editor/editor/editor.worker?worker";
import { cudaFrom } from "./cuda";
import { themeData, type ThemeName } from "./themes";

self.MonacoEnvironment = { getWorker: () => new EditorWorker() };

monaco.languages.register({ id: "cuda", extensions: [".cu", ".cuh"], aliases: ["CUDA"] });
const cuda = cudaFrom({ conf, language });
monaco.languages.setLanguageConfiguration("cuda", cuda.conf);
monaco.languages.setMonarchTokensProvider("cuda", cuda.language);

export interface Marker {
  severity: "error" | "warning" | "note";
  line: number;
  column: number | null;
  message: string;
}

export interface Lines {
  start: number;
  end: number; // exclusive
}

/** Reads the page's tokens anew: call it whenever the theme attribute has changed. */
export function applyTheme(name: ThemeName): void {
  monaco.editor.defineTheme(`kernelwright-${name}`, themeData(name, getComputedStyle(document.documentElement)));
  monaco.editor.setTheme(`kernelwright-${name}`);
}

/** For the other views in this folder: none of them imports Monaco by another way. */
export { monaco };

const COMMON: monaco.editor.IEditorOptions = {
  fontSize: 13,
  lineHeight: 20,
  minimap: { enabled: false },
  scrollBeyondLastLine: false,
  automaticLayout: true,
  fixedOverflowWidgets: true,
  renderLineHighlight: "line",
  overviewRulerBorder: false,
  hideCursorInOverviewRuler: true,
  scrollbar: { verticalScrollbarSize: 10, horizontalScrollbarSize: 10, useShadows: false },
  padding: { top: 6, bottom: 6 },
  lineNumbersMinChars: 3,
  lineDecorationsWidth: 10,
  bracketPairColorization: { enabled: false },
  guides: { indentation: false, bracketPairs: false },
  occurrencesHighlight: "singleFile",
  stickyScroll: { enabled: false },
  unicodeHighlight: { ambiguousCharacters: false },
  quickSuggestions: false,
  contextmenu: true,
  smoothScrolling: false,
};

/** Two texts beside each other, neither to be written in. */
export const COMPARED: monaco.editor.IDiffEditorOptions = {
  ...COMMON,
  readOnly: true,
  domReadOnly: true,
  originalEditable: false,
  useInlineViewWhenSpaceIsLimited: true,
  renderOverviewRuler: false,
  renderMarginRevertIcon: false,
  renderGutterMenu: false,
  diffAlgorithm: "advanced",
};

export interface CodeViewOptions {
  ariaLabel: string;
  readOnly: boolean;
  /** Shown when somebody types into a read-only view. */
  readOnlyMessage?: string;
  placeholder?: string;
  folding?: boolean;
}

/** One code editor that shows one of several texts, each with its own undo history and scroll position. */
export class CodeView {
  private readonly editor: monaco.editor.IStandaloneCodeEditor;
  private readonly models = new Map<string, monaco.editor.ITextModel>();
  private readonly positions = new Map<string, monaco.editor.ICodeEditorViewState>();
  private readonly decorations: monaco.editor.IEditorDecorationsCollection;
  private readonly costs: monaco.editor.IEditorDecorationsCollection;
  private key: string | null = null;
  private quiet = false;

  onText: ((key: string, text: string) => void) | null = null;
  onCursor: ((line: number, column: number) => void) | null = null;
  onScroll: (() => void) | null = null;

  constructor(host: HTMLElement, options: CodeViewOptions) {
    this.editor = monaco.editor.create(host, {
      ...COMMON,
      model: null,
      readOnly: options.readOnly,
      domReadOnly: options.readOnly,
      ariaLabel: options.ariaLabel,
      folding: options.folding ?? true,
      ...(options.placeholder ? { placeholder: options.placeholder } : {}),
      ...(options.readOnlyMessage ? { readOnlyMessage: { value: options.readOnlyMessage } } : {}),
    });
    this.decorations = this.editor.createDecorationsCollection();
    this.costs = this.editor.createDecorationsCollection();
    this.editor.onDidChangeModelContent(() => {
      if (!this.quiet && this.key !== null) this.onText?.(this.key, this.editor.getValue());
      this.onScroll?.();
    });
    this.editor.onDidChangeCursorPosition(({ position }) => this.onCursor?.(position.lineNumber, position.column));
    this.editor.onDidFocusEditorText(() => {
      const position = this.editor.getPosition();
      if (position) this.onCursor?.(position.lineNumber, position.column);
    });
    this.editor.onDidScrollChange(() => this.onScroll?.());
    this.editor.onDidLayoutChange(() => this.onScroll?.());
  }

  /** Show the text known by `key`, changing only what is different from what is shown. */
  show(key: string, text: string, languageId: string, readOnly?: boolean): void {
    this.quiet = true;
    try {
      if (key !== this.key) this.switchTo(key, text, languageId);
      const model = this.editor.getModel();
      if (!model) return;
      if (model.getLanguageId() !== languageId) monaco.editor.setModelLanguage(model, languageId);
      replaceChanged(model, text, !this.editor.getRawOptions().readOnly);
      if (readOnly !== undefined) this.editor.updateOptions({ readOnly, domReadOnly: readOnly });
    } finally {
      this.quiet = false;
    }
  }

  private switchTo(key: string, text: string, languageId: string): void {
    const state = this.key === null ? null : this.editor.saveViewState();
    if (this.key !== null && state) this.positions.set(this.key, state);
    let model = this.models.get(key);
    if (!model) {
      model = monaco.editor.createModel(text, languageId);
      model.setEOL(monaco.editor.EndOfLineSequence.LF);
      this.models.set(key, model);
    }
    this.key = key;
    this.decorations.clear();
    this.costs.clear();
    this.editor.setModel(model);
    const position = this.positions.get(key);
    if (position) this.editor.restoreViewState(position);
  }

  /** Texts that are no longer wanted, with their histories. */
  forgetAllBut(keys: ReadonlySet<string>): void {
    for (const [key, model] of this.models) {
      if (keys.has(key)) continue;
      if (key === this.key) {
        this.editor.setModel(null);
        this.key = null;
      }
      model.dispose();
      this.models.delete(key);
      this.positions.delete(key);
    }
  }

  /** `owner` is the tool that says so; each call replaces what that tool said of this text before. */
  setMarkers(owner: string, markers: readonly Marker[]): void {
    const model = this.editor.getModel();
    if (!model) return;
    monaco.editor.setModelMarkers(
      model,
      owner,
      markers.flatMap((marker) => {
        if (marker.line < 1 || marker.line > model.getLineCount()) return [];
        const first = model.getLineFirstNonWhitespaceColumn(marker.line) || 1;
        const start = Math.min(marker.column ?? first, model.getLineMaxColumn(marker.line));
        const word = model.getWordAtPosition({ lineNumber: marker.line, column: start });
        const end = marker.column === null ? model.getLineMaxColumn(marker.line) : (word?.endColumn ?? start + 1);
        return [
          {
            severity: SEVERITY[marker.severity],
            message: marker.message,
            source: owner,
            startLineNumber: marker.line,
            startColumn: start,
            endLineNumber: marker.line,
            endColumn: Math.max(end, start + 1),
          },
        ];
      }),
    );
  }

  /** `writing`: lines that are being written now. `changed`: settled lines that differ from the turn before. */
  setLines(writing: readonly Lines[], changed: readonly Lines[]): void {
    const decorate = (lines: readonly Lines[], options: monaco.editor.IModelDecorationOptions) =>
      lines
        .filter((range) => range.end > range.start)
        .map((range) => ({ range: new monaco.Range(range.start, 1, range.end - 1, 1), options }));
    this.decorations.set([
      ...decorate(writing, { isWholeLine: true, className: "kw-line-writing", linesDecorationsClassName: "kw-bar-writing" }),
      ...decorate(changed, { isWholeLine: true, linesDecorationsClassName: "kw-bar-changed" }),
    ]);
  }

  /** What hovering over a measured line says. */
  setHovers(lines: ReadonlyMap<number, readonly string[]>): void {
    const model = this.editor.getModel();
    if (!model) return;
    this.costs.set(
      [...lines].flatMap(([line, words]) =>
        line > model.getLineCount()
          ? []
          : [
              {
                range: new monaco.Range(line, 1, line, model.getLineMaxColumn(line)),
                options: { hoverMessage: words.map((value) => ({ value: escapeMarkdown(value) })) },
              },
            ],
      ),
    );
  }

  revealLine(line: number, column: number, focus: boolean): void {
    const position = { lineNumber: line, column };
    this.editor.setPosition(position);
    this.editor.revealPositionInCenterIfOutsideViewport(position);
    if (focus) this.editor.focus();
  }

  /** Keep the line in view without taking the cursor: for following a text as it is written. */
  follow(line: number): void {
    this.editor.revealLineInCenterIfOutsideViewport(line);
  }

  focus(): void {
    this.editor.focus();
  }

  get lineCount(): number {
    return this.editor.getModel()?.getLineCount() ?? 0;
  }

  /** Pixels from the view's top to the line's, scrolling included. */
  lineTop(line: number): number {
    return this.editor.getTopForLineNumber(line) - this.editor.getScrollTop();
  }

  get height(): number {
    return this.editor.getLayoutInfo().height;
  }

  dispose(): void {
    this.editor.dispose();
    for (const model of this.models.values()) model.dispose();
    this.models.clear();
  }
}

/** Two settled texts side by side, or one above the other where there is no room. */
export class DiffView {
  private readonly editor: monaco.editor.IStandaloneDiffEditor;

  constructor(host: HTMLElement) {
    this.editor = monaco.editor.createDiffEditor(host, {
      ...COMPARED,
      renderSideBySide: true,
      renderSideBySideInlineBreakpoint: 760,
      hideUnchangedRegions: { enabled: true, contextLineCount: 3, minimumLineCount: 4 },
    });
  }

  show(before: { name: string; text: string }, after: { name: string; text: string }): void {
    const current = this.editor.getModel();
    if (current?.original.getValue() === before.text) {
      replaceChanged(current.modified, after.text);
    } else {
      this.editor.setModel({
        original: monaco.editor.createModel(before.text, "cuda"),
        modified: monaco.editor.createModel(after.text, "cuda"),
      });
      current?.original.dispose();
      current?.modified.dispose();
    }
    // The labels given at creation do not reach the inner editors' text areas.
    this.editor.getOriginalEditor().updateOptions({ ariaLabel: before.name });
    this.editor.getModifiedEditor().updateOptions({ ariaLabel: after.name });
  }

  dispose(): void {
    const model = this.editor.getModel();
    this.editor.dispose();
    model?.original.dispose();
    model?.modified.dispose();
  }
}

const SEVERITY = {
  error: monaco.MarkerSeverity.Error,
  warning: monaco.MarkerSeverity.Warning,
  note: monaco.MarkerSeverity.Info,
};

/** Replaces only the lines between the common start and the common end, so that nothing else moves or flickers. */
function replaceChanged(model: monaco.editor.ITextModel, text: string, undoable = false): void {
  const old = model.getValue();
  if (old === text) return;
  const before = old.split("\n");
  const after = text.split("\n");
  let top = 0;
  while (top < before.length - 1 && top < after.length - 1 && before[top] === after[top]) top += 1;
  let tail = 0;
  while (
    tail < before.length - top - 1 &&
    tail < after.length - top - 1 &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const lastLine = before.length - tail;
  const edit = {
    range: new monaco.Range(top + 1, 1, lastLine, model.getLineMaxColumn(lastLine)),
    text: after.slice(top, after.length - tail).join("\n"),
  };
  if (undoable) model.pushEditOperations([], [edit], () => null);
  else model.applyEdits([edit]);
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~]/g, "\\$&");
}
