/** What a language model did in a turn: its answers, its tools with what they said, and when it had to be waited for. */
import type { JSX } from "preact";
import type { Answered, ToolUsed } from "../../generated/events";
import { count, seconds } from "../../state/format";
import type { Step } from "../../state/run";

export function StepView({ step, open }: { step: Step; open: boolean }): JSX.Element {
  switch (step.kind) {
    case "answer":
      return <AnswerStep answer={step.answer} open={open} />;
    case "tool":
      return <ToolStep tool={step.tool} />;
    case "wait":
      return (
        <div class="agent-step tone-warn" title={step.why}>
          waiting for the model, attempt {step.attempt} of {step.of} <span class="muted">· {step.why}</span>
        </div>
      );
  }
}

function AnswerStep({ answer, open }: { answer: Answered; open: boolean }): JSX.Element {
  const facts = [
    `${answer.estimated ? "~" : ""}${count(answer.prompt_tokens)} + ${count(answer.completion_tokens)} tokens`,
    answer.first_token_seconds === null ? "" : `first after ${answer.first_token_seconds.toFixed(2)} s`,
    seconds(answer.seconds),
    answer.attempts > 1 ? `attempt ${answer.attempts}` : "",
    answer.finish_reason === "length" || answer.finish_reason === "cut" ? "cut off" : "",
    answer.skills.length ? `skills: ${answer.skills.join(", ")}` : "",
    ...answer.repairs,
  ].filter(Boolean);
  return (
    <details class="agent-step" open={open && answer.text !== ""}>
      <summary>
        <span>{answer.plan || "answer"}</span> <span class="muted num">{facts.join(" · ")}</span>
      </summary>
      {answer.text ? <pre class="agent-text">{answer.text}</pre> : null}
    </details>
  );
}

/** A tool's call and the first line of what it said; the rest is folded. */
function ToolStep({ tool }: { tool: ToolUsed }): JSX.Element {
  const [first = ""] = tool.observation.split("\n", 1);
  return (
    <details class="agent-step">
      <summary>
        <code class={tool.ok ? "" : "tone-bad"}>{tool.tool}</code> <code class="muted">{shortArguments(tool.arguments)}</code>
        {tool.ok ? "" : <span class="tone-bad"> refused</span>} <span class="muted">{first}</span>
      </summary>
      <pre class="agent-text">
        {tool.arguments}
        {"\n\n"}
        {tool.observation}
      </pre>
    </details>
  );
}

/** `write_file` brings a whole source: long values are named by their size. */
export function shortArguments(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text.length > 60 ? `${text.slice(0, 60)}…` : text;
  }
  if (typeof parsed !== "object" || parsed === null) return text;
  return Object.entries(parsed)
    .map(([name, value]) => {
      const words = typeof value === "string" ? value : JSON.stringify(value);
      return words.length > 40 || words.includes("\n") ? `${name}: ${words.split("\n").length} lines` : `${name}: ${words}`;
    })
    .join(", ");
}
