/** What the page is born with: the block of JSON that the server writes into the shell. */
import type { Options, UserInfo } from "../generated/events";

export interface Bootstrap {
  user: UserInfo;
  options: Options;
  version: string;
  runId: string | null;
}

interface Written {
  user?: Partial<UserInfo> & { name?: string };
  options?: Partial<Options>;
  version?: string;
  run_id?: string | null;
}

/** Throws when the block is missing: then this page was not served by Kernelwright. */
export function readBootstrap(page: Document): Bootstrap {
  const text = page.getElementById("bootstrap")?.textContent;
  if (!text) throw new Error("This page has no bootstrap block: it was not served by Kernelwright.");
  return decodeBootstrap(JSON.parse(text) as Written);
}

export function decodeBootstrap(raw: Written): Bootstrap {
  const { user = {}, options = {} } = raw;
  return {
    user: {
      id: user.id ?? 0,
      username: user.username ?? user.name ?? "",
      is_staff: user.is_staff ?? false,
    },
    options: {
      policies: options.policies ?? [{ name: "builtin", title: "Built-in translator", available: true, reason: "", model: "", protocol: "", priced: false }],
      targets: options.targets ?? [],
      default_target: options.default_target ?? options.targets?.[0] ?? "",
      backends: options.backends ?? ["auto"],
      turns_default: options.turns_default ?? 8,
      turns_default_llm: options.turns_default_llm ?? 12,
      turns_max: options.turns_max ?? 32,
      turns_max_llm: options.turns_max_llm ?? 200,
      source_bytes_max: options.source_bytes_max ?? 1_000_000,
    },
    version: raw.version ?? "",
    runId: raw.run_id ?? null,
  };
}
