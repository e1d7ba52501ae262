/** Who writes the candidates: the built-in translator or a language model, and what bounds a run with one. */
import type { Options, PolicyOption, ProfileVersion, RunCreate } from "../generated/events";

export interface AgentSettings {
  /** Of a workspace, "team/careful"; it says all that follows by itself. Empty: none. */
  profile: string;
  policy: string;
  /** Of policy llm: a name that the server knows. */
  model: string;
  protocol: "auto" | "rewrite" | "tools";
  minutes: number | null;
  tokens: number | null;
  cost: number | null;
}

export const NO_LIMITS = { profile: "", protocol: "auto", minutes: null, tokens: null, cost: null } as const;

/** One value for a list of choices: "builtin", "llm:coder". */
export function agentKey(agent: { policy: string; model: string; profile?: string }): string {
  if (agent.profile) return `profile:${agent.profile}`;
  return agent.model ? `${agent.policy}:${agent.model}` : agent.policy;
}

export function optionKey(option: PolicyOption): string {
  return agentKey({ policy: option.name, model: option.model });
}

export function optionOf(options: Options, agent: { policy: string; model: string }): PolicyOption | undefined {
  return options.policies.find((it) => optionKey(it) === agentKey(agent));
}

/** The agent as it was chosen last, where this server still has it. */
export function knownAgent(options: Options, kept: Partial<AgentSettings> | null): AgentSettings {
  const wanted = { policy: kept?.policy ?? "builtin", model: kept?.model ?? "" };
  const option = optionOf(options, wanted);
  const found = option?.available ? option : options.policies.find((it) => it.available);
  const limits = { protocol: kept?.protocol ?? NO_LIMITS.protocol, minutes: kept?.minutes ?? null, tokens: kept?.tokens ?? null, cost: kept?.cost ?? null };
  return { profile: kept?.profile ?? "", policy: found?.name ?? "builtin", model: found?.model ?? "", ...limits };
}

/** The part of a request that says who writes the candidates. */
export function agentRequest(options: Options, agent: AgentSettings): Partial<RunCreate> {
  if (agent.profile) {
    const [workspace = "", profile = ""] = agent.profile.split("/");
    return { profile, workspace };
  }
  if (agent.policy !== "llm") return { policy: agent.policy };
  const priced = optionOf(options, agent)?.priced ?? false;
  return {
    policy: "llm",
    model: agent.model,
    protocol: agent.protocol,
    ...(agent.minutes ? { seconds: agent.minutes * 60 } : {}),
    ...(agent.tokens ? { tokens: agent.tokens } : {}),
    ...(agent.cost && priced ? { cost: agent.cost } : {}),
  };
}

export function profileKey(profile: ProfileVersion): string {
  return `${profile.workspace}/${profile.name}`;
}

export function turnsDefault(options: Options, policy: string): number {
  return policy === "llm" ? options.turns_default_llm : options.turns_default;
}

export function turnsMax(options: Options, policy: string): number {
  return policy === "llm" ? options.turns_max_llm : options.turns_max;
}
