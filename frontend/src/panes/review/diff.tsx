/** The two revisions in the editor, with threads and comments being written between their lines. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { render, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Marked, ReviewDiff } from "../../editor/review";
import * as review from "../../state/review";
import { placeIn, revisionWords } from "../../state/threads";
import { typed } from "../../state/typed";
import { cursor } from "../../state/workbench";
import { useReviewEditor } from "../editors";
import { BoxView } from "./box";
import { ThreadView } from "./thread";

interface Spot {
  key: string;
  side: "old" | "new";
  line: number;
  view: JSX.Element;
}

export function ReviewDiffView(): JSX.Element {
  const editor = useReviewEditor();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<ReviewDiff | null>(null);
  const ready = useSignal(false);
  const mounted = useRef(new Map<string, HTMLElement>());

  useEffect(() => {
    if (!editor || !host.current) return;
    const created = new editor.ReviewDiff(host.current);
    created.onAsk = review.commentOn;
    created.onCursor = (_side, line, column) => (cursor.value = { line, column, where: "candidate" });
    view.current = created;
    review.diffView.value = { nextHunk: (by) => created.nextHunk(by), selected: () => created.selected() };
    ready.value = true;
    return () => {
      ready.value = false;
      view.current = null;
      review.diffView.value = null;
      for (const node of mounted.current.values()) render(null, node);
      mounted.current.clear();
      created.dispose();
    };
  }, [editor]);

  useSignalEffect(() => {
    const options = review.view.value;
    if (ready.value) view.current?.setOptions(options);
  });

  useSignalEffect(() => {
    const after = review.to.value;
    const before = review.from.value;
    if (!ready.value || !view.current || !after) return;
    const name = (it: typeof after) => `Revision ${it.number}, ${revisionWords(it)}, read only`;
    view.current.show(before && { name: name(before), text: before.source }, { name: name(after), text: after.source });
    // In the same effect, since a new text takes the places between the lines of the old one away.
    const shown = review.compared.value;
    if (!shown) return;
    const current = review.currentThread.value;
    const spots: Spot[] = [];
    const marks: Marked[] = [];
    for (const thread of review.threads.value) {
      const place = placeIn(thread, shown);
      if (!place) continue;
      const kind = thread.id === current ? "current" : thread.comments.every((it) => it.draft) ? "draft" : thread.resolved ? "resolved" : "open";
      marks.push({ side: place.side, line: place.line, endLine: place.endLine, kind });
      // A resolved one takes no room in the code, unless somebody stands on it; the list below has it.
      if (thread.resolved && thread.id !== current) continue;
      spots.push({ key: `thread-${thread.id}`, side: place.side, line: place.endLine, view: <ThreadView thread={thread} placed /> });
    }
    for (const box of typed.value.boxes) {
      const side = box.revision === shown.to ? "new" : box.revision === shown.from ? "old" : null;
      if (!side) continue;
      marks.push({ side, line: box.line, endLine: box.endLine, kind: "draft" });
      spots.push({ key: `box-${box.key}`, side, line: box.endLine, view: <BoxView boxKey={box.key} /> });
    }
    const nodes = view.current.setZones(spots.map(({ key, side, line }) => ({ key, side, line })));
    for (const [key, node] of mounted.current) {
      if (nodes.get(key) === node) continue;
      render(null, node);
      mounted.current.delete(key);
    }
    for (const spot of spots) {
      const node = nodes.get(spot.key);
      if (!node) continue;
      render(spot.view, node);
      mounted.current.set(spot.key, node);
    }
    view.current.setMarks(marks);
  });

  useSignalEffect(() => {
    const place = review.reveal.value;
    if (ready.value && place) view.current?.reveal(place.side, place.line, place.focus);
  });

  return (
    <div class="editor-area">
      <div ref={host} class="editor-host diff-host review-host" />
      {editor ? null : <pre class="editor-fallback">{review.to.value?.source}</pre>}
    </div>
  );
}
