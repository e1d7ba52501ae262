/**
 * What survives a reload. A browser tab keeps its own (session storage); a new tab starts from the last one used
 * (local storage). A full or forbidden storage is no reason to stop working.
 */
const PREFIX = "kernelwright.";

export function load(key: string): unknown {
  for (const storage of stores()) {
    try {
      const text = storage.getItem(PREFIX + key);
      if (text !== null) return JSON.parse(text);
    } catch {
      continue;
    }
  }
  return null;
}

/** False when it could not be kept anywhere. */
export function save(key: string, value: unknown): boolean {
  const text = JSON.stringify(value);
  let kept = false;
  for (const storage of stores()) {
    try {
      storage.setItem(PREFIX + key, text);
      kept = true;
    } catch {
      continue;
    }
  }
  return kept;
}

function stores(): Storage[] {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return [];
  }
}
