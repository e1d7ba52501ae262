import tseslint from "typescript-eslint";

/** generated <- protocol <- state <- panes: a layer may import itself and those to its left, never to its right. */
const monaco = {
  group: ["monaco-editor", "monaco-editor/*"],
  message: "Only editor/monaco.ts imports Monaco.",
};
const layer = (files, forbidden) => ({
  files: [`src/${files}/**/*.{ts,tsx}`],
  rules: {
    "no-restricted-imports": [
      "error",
      {
        patterns: [
          monaco,
          {
            group: forbidden.map((name) => `**/${name}/**`),
            message: `src/${files} must not import from ${forbidden.join(", ")}.`,
          },
        ],
      },
    ],
  },
});

export default tseslint.config(
  { ignores: ["node_modules", "src/generated", "eslint.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "max-lines": ["error", 520],
      eqeqeq: "error",
      "no-restricted-imports": ["error", { patterns: [monaco] }],
    },
  },
  layer("protocol", ["state", "panes", "editor"]),
  layer("state", ["panes", "editor"]),
  layer("editor", ["panes", "state", "protocol"]),
  { files: ["src/editor/monaco.ts"], rules: { "no-restricted-imports": "off" } },
);
