/** Two revisions, one beside the other, with places between the lines for what is said about them. */
import { COMPARED, monaco } from "./monaco";

export type Side = "old" | "new";

export interface ReviewDiffOptions {
  inline: boolean;
  ignoreSpace: boolean;
  /** Unchanged lines around each change; null: all of them. */
  context: number | null;
}

export interface Marked {
  side: Side;
  line: number;
  endLine: number;
  kind: "open" | "resolved" | "draft" | "current";
}

/** A place between the lines. Its height follows what is put into its `node`. */
interface Zone {
  side: Side;
  line: number;
  node: HTMLElement;
  inner: HTMLElement;
  id: string;
  view: monaco.editor.IViewZone;
  widget: monaco.editor.IOverlayWidget;
  watcher: ResizeObserver;
}

const GUTTER: readonly monaco.editor.MouseTargetType[] = [
  monaco.editor.MouseTargetType.GUTTER_LINE_NUMBERS,
  monaco.editor.MouseTargetType.GUTTER_LINE_DECORATIONS,
  monaco.editor.MouseTargetType.GUTTER_GLYPH_MARGIN,
];

export class ReviewDiff {
  private readonly editor: monaco.editor.IStandaloneDiffEditor;
  private readonly zones = new Map<string, Zone>();
  private readonly marks: Record<Side, monaco.editor.IEditorDecorationsCollection>;
  private readonly hover: Record<Side, monaco.editor.IEditorDecorationsCollection>;
  private options: ReviewDiffOptions = { inline: false, ignoreSpace: false, context: 3 };
  private whole = false;
  /** Lines that must not be folded away, once the difference is known. */
  private wanted: { side: Side; line: number }[] = [];
  /** The difference of these two texts is worked out. */
  private known = false;
  private focused: Side = "new";

  /** Somebody wants to say something about these lines. */
  onAsk: ((side: Side, line: number, endLine: number) => void) | null = null;
  onCursor: ((side: Side, line: number, column: number) => void) | null = null;

  constructor(host: HTMLElement) {
    this.editor = monaco.editor.createDiffEditor(host, {
      ...COMPARED,
      renderSideBySideInlineBreakpoint: 640,
      lineDecorationsWidth: 18,
      readOnlyMessage: { value: "Revisions never change. Comment on the line, suggest a change, or make a new revision." },
    });
    const each = <T>(make: (editor: monaco.editor.ICodeEditor, side: Side) => T): Record<Side, T> => ({
      old: make(this.editor.getOriginalEditor(), "old"),
      new: make(this.editor.getModifiedEditor(), "new"),
    });
    this.marks = each((editor) => editor.createDecorationsCollection());
    this.hover = each((editor) => editor.createDecorationsCollection());
    each((editor, side) => this.listen(editor, side));
    this.editor.onDidUpdateDiff(() => {
      this.known = true;
      this.unfold();
    });
  }

  private listen(editor: monaco.editor.ICodeEditor, side: Side): void {
    editor.onMouseMove(({ target }) => {
      const line = target.position?.lineNumber;
      const inText = GUTTER.includes(target.type) || target.type === monaco.editor.MouseTargetType.CONTENT_TEXT;
      this.hover[side].set(
        line !== undefined && inText
          ? [{ range: new monaco.Range(line, 1, line, 1), options: { linesDecorationsClassName: "kw-comment-here codicon codicon-add" } }]
          : [],
      );
    });
    editor.onMouseLeave(() => this.hover[side].clear());
    editor.onMouseDown(({ target }) => {
      const line = target.position?.lineNumber;
      if (line === undefined || !GUTTER.includes(target.type)) return;
      const selection = editor.getSelection();
      if (selection && !selection.isEmpty() && selection.startLineNumber <= line && line <= lastLine(selection)) this.onAsk?.(side, selection.startLineNumber, lastLine(selection));
      else this.onAsk?.(side, line, line);
    });
    editor.onDidFocusEditorText(() => (this.focused = side));
    editor.onDidChangeCursorPosition(({ position }) => {
      if (editor.hasTextFocus()) this.onCursor?.(side, position.lineNumber, position.column);
    });
    editor.onDidLayoutChange(() => {
      for (const zone of this.zones.values()) if (zone.side === side) this.fit(zone);
    });
  }

  /** `before` null: the whole of `after`, and nothing to compare it with. */
  show(before: { name: string; text: string } | null, after: { name: string; text: string }): void {
    const current = this.editor.getModel();
    const old = before?.text ?? after.text;
    this.whole = before === null;
    if (current?.original.getValue() !== old || current.modified.getValue() !== after.text) {
      // Places between the lines go with the view of a text; whoever wants them sets them anew.
      for (const [key, zone] of this.zones) this.remove(key, zone);
      this.known = false;
      this.wanted = [];
      const model = (text: string) => monaco.editor.createModel(text, "cuda");
      this.editor.setModel({ original: model(old), modified: model(after.text) });
      if (current) disposeLater(current);
    }
    this.editor.getOriginalEditor().updateOptions({ ariaLabel: before?.name ?? after.name, lineNumbers: this.whole ? "off" : "on" });
    this.editor.getModifiedEditor().updateOptions({ ariaLabel: after.name });
    this.setOptions(this.options);
  }

  setOptions(options: ReviewDiffOptions): void {
    this.options = options;
    this.editor.updateOptions({
      renderSideBySide: !options.inline && !this.whole,
      ignoreTrimWhitespace: options.ignoreSpace,
      hideUnchangedRegions: {
        enabled: options.context !== null && !this.whole,
        contextLineCount: options.context ?? 3,
        minimumLineCount: 4,
        revealLineCount: 20,
      },
    });
  }

  /** Lines with threads: a bar beside them, and the one that one stands on lit. */
  setMarks(marks: readonly Marked[]): void {
    for (const side of ["old", "new"] as const) {
      const last = this.code(side).getModel()?.getLineCount() ?? 0;
      this.marks[side].set(
        marks
          .filter((it) => it.side === side && it.line <= last)
          .map((it) => ({
            range: new monaco.Range(it.line, 1, Math.min(it.endLine, last), 1),
            options: {
              isWholeLine: true,
              linesDecorationsClassName: `kw-mark kw-mark-${it.kind}`,
              ...(it.kind === "current" ? { className: "kw-line-current" } : {}),
            },
          })),
      );
    }
    this.wanted = marks.map(({ side, line }) => ({ side, line }));
    this.unfold();
  }

  /** What folding would hide and must not: a cursor put there opens the fold. */
  private unfold(): void {
    if (this.whole || this.options.context === null || !this.known) return;
    for (const side of ["old", "new"] as const) {
      const editor = this.code(side);
      const lines = this.wanted.filter((it) => it.side === side);
      if (!lines.length) continue;
      const before = editor.hasTextFocus() ? editor.getPosition() : null;
      const top = editor.getScrollTop();
      for (const { line } of lines) editor.setPosition({ lineNumber: line, column: 1 });
      if (before) editor.setPosition(before);
      editor.setScrollTop(top);
    }
  }

  /** Makes the places that are named, keeps those that were there, and takes the others away. Their nodes, by key. */
  setZones(places: readonly { key: string; side: Side; line: number }[]): Map<string, HTMLElement> {
    const wanted = new Map(places.map((it) => [it.key, it]));
    for (const [key, zone] of this.zones) {
      const place = wanted.get(key);
      if (place?.side !== zone.side) this.remove(key, zone);
      else if (place.line !== zone.line) {
        zone.line = place.line;
        zone.view.afterLineNumber = place.line;
        this.code(zone.side).changeViewZones((change) => change.layoutZone(zone.id));
      }
    }
    for (const place of places) if (!this.zones.has(place.key)) this.add(place.key, place.side, place.line);
    return new Map([...this.zones].map(([key, zone]) => [key, zone.inner]));
  }

  private add(key: string, side: Side, line: number): void {
    const node = document.createElement("div");
    const inner = document.createElement("div");
    node.className = "review-zone";
    inner.className = "review-zone-inner";
    node.append(inner);
    // Keys typed into a comment are the comment's, not the editor's.
    for (const kind of ["keydown", "keypress", "keyup"] as const) node.addEventListener(kind, (event) => event.stopPropagation());
    const view: monaco.editor.IViewZone = {
      afterLineNumber: line,
      heightInPx: 60,
      domNode: document.createElement("div"),
      onDomNodeTop: (top) => (node.style.top = `${top}px`),
      onComputedHeight: (height) => (node.style.height = `${height}px`),
    };
    const widget: monaco.editor.IOverlayWidget = { getId: () => `review-zone-${key}`, getDomNode: () => node, getPosition: () => null };
    const editor = this.code(side);
    editor.addOverlayWidget(widget);
    const zone: Zone = { side, line, node, inner, id: "", view, widget, watcher: new ResizeObserver(() => this.grow(zone)) };
    editor.changeViewZones((change) => (zone.id = change.addZone(view)));
    this.zones.set(key, zone);
    this.fit(zone);
    zone.watcher.observe(inner);
  }

  private fit(zone: Zone): void {
    const { contentLeft, contentWidth, verticalScrollbarWidth } = this.code(zone.side).getLayoutInfo();
    zone.node.style.left = `${contentLeft}px`;
    zone.node.style.width = `${Math.max(contentWidth - verticalScrollbarWidth, 120)}px`;
  }

  private grow(zone: Zone): void {
    const height = zone.inner.offsetHeight + 8;
    if (!zone.inner.offsetHeight || zone.view.heightInPx === height) return;
    zone.view.heightInPx = height;
    this.code(zone.side).changeViewZones((change) => change.layoutZone(zone.id));
  }

  private remove(key: string, zone: Zone): void {
    const editor = this.code(zone.side);
    zone.watcher.disconnect();
    editor.changeViewZones((change) => change.removeZone(zone.id));
    editor.removeOverlayWidget(zone.widget);
    this.zones.delete(key);
  }

  private code(side: Side): monaco.editor.ICodeEditor {
    return side === "old" ? this.editor.getOriginalEditor() : this.editor.getModifiedEditor();
  }

  reveal(side: Side, line: number, focus: boolean): void {
    const editor = this.code(side);
    editor.setPosition({ lineNumber: line, column: 1 });
    editor.revealLineInCenterIfOutsideViewport(line);
    if (focus) editor.focus();
  }

  nextHunk(by: 1 | -1): void {
    this.editor.goToDiff(by > 0 ? "next" : "previous");
    this.editor.getModifiedEditor().focus();
  }

  get hunks(): number {
    return this.whole ? 0 : (this.editor.getLineChanges()?.length ?? 0);
  }

  /** The lines that are selected where the cursor was last. */
  selected(): { side: Side; line: number; endLine: number } {
    const side = this.whole ? "new" : this.focused;
    const selection = this.code(side).getSelection();
    return selection ? { side, line: selection.startLineNumber, endLine: lastLine(selection) } : { side: "new", line: 1, endLine: 1 };
  }

  dispose(): void {
    for (const [key, zone] of this.zones) this.remove(key, zone);
    const model = this.editor.getModel();
    this.editor.dispose();
    if (model) disposeLater(model);
  }
}

/** The worker may be at work on them, and takes a text that is gone for a fault. */
function disposeLater(model: monaco.editor.IDiffEditorModel): void {
  setTimeout(() => {
    model.original.dispose();
    model.modified.dispose();
  }, 10_000);
}

/** A selection that ends before a line's first character does not mean that line. */
function lastLine(selection: monaco.Selection): number {
  const { startLineNumber: start, endLineNumber: end, endColumn } = selection;
  return end > start && endColumn === 1 ? end - 1 : end;
}
