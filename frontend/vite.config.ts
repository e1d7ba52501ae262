import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Django serves what the build writes; the page finds the entry's real name in the manifest. */
const outDir = fileURLToPath(new URL("../webapp/static/ide", import.meta.url));

export default defineConfig({
  base: "/static/ide/",
  build: {
    outDir,
    emptyOutDir: true,
    manifest: true,
    // The licences of what is bundled, beside it.
    license: { fileName: "licenses.md" },
    target: "es2022",
    // Monaco is one large chunk on purpose: it loads after the shell, once, and is cached by its hash.
    chunkSizeWarningLimit: 5000,
    rolldownOptions: { input: fileURLToPath(new URL("src/main.ts", import.meta.url)) },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
