/** Opening the user's files: text only, at most what the server takes, and nothing lost when refused. */

export type Opened = { ok: true; filename: string; text: string } | { ok: false; why: string };

export async function readTextFile(file: File, largest: number): Promise<Opened> {
  if (file.size > largest) {
    const size = (file.size / 1e6).toFixed(1);
    return refuse(`${file.name} has ${size} MB; at most ${(largest / 1e6).toFixed(0)} MB of text can be translated.`);
  }
  return decodeText(file.name, await file.arrayBuffer());
}

export function decodeText(filename: string, data: ArrayBuffer): Opened {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return refuse(`${filename} is not UTF-8 text. Save it as UTF-8 and open it again.`);
  }
  if (text.includes("\0")) return refuse(`${filename} is a binary file, not source text.`);
  return { ok: true, filename, text: text.replaceAll("\r\n", "\n") };
}

/** Null when the text may be sent, else why not. */
export function tooLarge(text: string, largest: number): string | null {
  const size = new TextEncoder().encode(text).length;
  if (size <= largest) return null;
  return `This source has ${(size / 1e6).toFixed(2)} MB; at most ${(largest / 1e6).toFixed(0)} MB can be translated.`;
}

function refuse(why: string): Opened {
  return { ok: false, why: `${why} What was open stays as it was.` };
}
