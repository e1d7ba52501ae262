/** Monaco's themes from the page's tokens: one place says what a colour is. */

export type ThemeName = "dark" | "light" | "high-contrast";

export interface ThemeData {
  base: "vs-dark" | "vs" | "hc-black";
  inherit: boolean;
  rules: { token: string; foreground?: string; fontStyle?: string }[];
  colors: Record<string, string>;
}

export function themeData(name: ThemeName, tokens: CSSStyleDeclaration): ThemeData {
  const token = (variable: string) => longHex(tokens.getPropertyValue(variable).trim());
  const bare = (variable: string) => token(variable).replace("#", "");
  const rule = (scope: string, variable: string, fontStyle?: string) => ({
    token: scope,
    foreground: bare(variable),
    ...(fontStyle ? { fontStyle } : {}),
  });
  // Brackets in three colours say nothing here; colour is kept for what does.
  const brackets = [1, 2, 3, 4, 5, 6].map((n) => [`editorBracketHighlight.foreground${n}`, token("--code-punctuation")]);
  return {
    base: name === "light" ? "vs" : name === "dark" ? "vs-dark" : "hc-black",
    inherit: true,
    rules: [
      rule("", "--code-text"),
      rule("comment", "--code-comment"),
      rule("keyword", "--code-keyword"),
      rule("keyword.launch", "--code-launch", "bold"),
      rule("type", "--code-type"),
      rule("support.function", "--code-function"),
      rule("variable.predefined", "--code-builtin"),
      rule("number", "--code-number"),
      rule("string", "--code-string"),
      rule("delimiter", "--code-punctuation"),
      rule("identifier", "--code-text"),
      rule("keyword.directive", "--code-directive"),
    ],
    colors: {
      ...(Object.fromEntries(brackets) as Record<string, string>),
      "editor.background": token("--editor-bg"),
      "editor.foreground": token("--code-text"),
      "editorGutter.background": token("--editor-bg"),
      "editorLineNumber.foreground": token("--text-faint"),
      "editorLineNumber.activeForeground": token("--text"),
      "editor.lineHighlightBackground": token("--line-bg"),
      "editor.lineHighlightBorder": name === "high-contrast" ? token("--accent") : "#00000000",
      "editor.selectionBackground": token("--selection-bg"),
      "editor.inactiveSelectionBackground": token("--selection-inactive-bg"),
      "editorCursor.foreground": token("--text-strong"),
      "editorWidget.background": token("--raised-bg"),
      "editorWidget.border": token("--border-strong"),
      "editorHoverWidget.background": token("--raised-bg"),
      "editorHoverWidget.border": token("--border-strong"),
      "editorError.foreground": token("--bad"),
      "editorWarning.foreground": token("--warn"),
      "editorInfo.foreground": token("--accent"),
      "focusBorder": token("--accent"),
      "scrollbarSlider.background": token("--scrollbar"),
      "scrollbarSlider.hoverBackground": token("--scrollbar-hover"),
      "scrollbarSlider.activeBackground": token("--scrollbar-hover"),
      "diffEditor.insertedTextBackground": token("--diff-added-text"),
      "diffEditor.removedTextBackground": token("--diff-removed-text"),
      "diffEditor.insertedLineBackground": token("--diff-added-line"),
      "diffEditor.removedLineBackground": token("--diff-removed-line"),
      "diffEditor.unchangedRegionBackground": token("--panel-bg"),
      "diffEditor.unchangedRegionForeground": token("--text-muted"),
      "editorOverviewRuler.border": "#00000000",
      "editorPlaceholder.foreground": token("--text-faint"),
    },
  };
}

/** Monaco wants #rrggbb or #rrggbbaa; the build shortens colours, and "transparent" is a word. */
export function longHex(colour: string): string {
  if (colour === "transparent") return "#00000000";
  return /^#[0-9a-f]{3,4}$/i.test(colour) ? colour.replace(/[0-9a-f]/gi, "$&$&") : colour;
}
