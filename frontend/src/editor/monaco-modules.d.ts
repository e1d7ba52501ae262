/** Monaco ships these without types. */
declare module "monaco-editor/languages/definitions/cpp/cpp" {
  // eslint-disable-next-line no-restricted-imports -- types for the one module that may import it
  import type { languages } from "monaco-editor/editor";
  export const conf: languages.LanguageConfiguration;
  export const language: languages.IMonarchLanguage & { tokenizer: Record<string, languages.IMonarchLanguageRule[]> };
}
declare module "monaco-editor/features/register.all";
declare module "monaco-editor/languages/definitions/cpp/register";
declare module "monaco-editor/languages/definitions/python/register";
