/** What a file is, by its name first and by its text where the name says nothing. */
export type FileKind = "c" | "pytorch" | "cuda";

const SUFFIXES: Record<string, FileKind> = { c: "c", h: "c", py: "pytorch", cu: "cuda", cuh: "cuda" };

export function kindOf(filename: string, text: string): FileKind {
  const suffix = /\.([a-z]+)$/i.exec(filename)?.[1]?.toLowerCase() ?? "";
  return SUFFIXES[suffix] ?? kindByText(text);
}

export function kindByText(text: string): FileKind {
  if (/\b__global__\b|<<<|extern\s+"C"\s+void\s+launch/.test(text)) return "cuda";
  if (/^\s*(import torch|from torch|class \w+\s*\(.*nn\.Module|def \w+\(.*\)\s*(->.*)?:)/m.test(text)) return "pytorch";
  return "c";
}

/** A scratch file keeps up with what is typed into it; a name that the user chose stays. */
export function scratchName(filename: string, text: string): string {
  if (!/^untitled(-\d+)?\.(c|py)$/.test(filename)) return filename;
  const kind = kindByText(text);
  return filename.replace(/\.(c|py)$/, kind === "pytorch" ? ".py" : ".c");
}

export const MONACO_LANGUAGE: Record<FileKind, string> = { c: "c", pytorch: "python", cuda: "cuda" };

export const KIND_WORDS: Record<FileKind, string> = { c: "C", pytorch: "PyTorch", cuda: "CUDA" };
