/** The inputs block as the command line reads it. */
import type { InputsInput } from "../generated/events";

export function inputsToml(inputs: InputsInput): string {
  const parts: string[] = [];
  if (inputs.tolerance !== null && inputs.tolerance !== undefined) parts.push(`tolerance = ${inputs.tolerance}`);
  if (inputs.reproducible) parts.push("reproducible = true");
  const top = parts.length ? [`${parts.join("\n")}\n`] : [];
  for (const block of ["sizes", "scalars"] as const) {
    const entries = Object.entries(inputs[block] ?? {});
    if (entries.length) top.push(table(block, entries));
  }
  for (const [name, array] of Object.entries(inputs.arrays ?? {})) top.push(table(`arrays.${name}`, Object.entries(array)));
  return top.join("\n");
}

function table(name: string, entries: [string, unknown][]): string {
  const lines = entries
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${key} = ${typeof value === "string" ? JSON.stringify(value) : String(value)}`);
  return `[${name}]\n${lines.join("\n")}\n`;
}
