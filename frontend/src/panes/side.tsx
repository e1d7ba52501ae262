/** Help and settings, in the place of the explorer. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Finding } from "../generated/events";
import { ApiError, getDoctor } from "../protocol/api";
import { execute } from "../state/commands";
import { layout, resetLayout, setLayout, sideView, type ThemeChoice } from "../state/layout";
import { bootstrap } from "../state/workbench";
import { Explorer } from "./explorer";
import { KeyTable } from "./overlays";
import { Section, SignView } from "./parts";
import { ReviewList } from "./review/list";

export function SidePane(): JSX.Element {
  switch (sideView.value) {
    case "explorer":
      return <Explorer />;
    case "reviews":
      return <ReviewList />;
    case "help":
      return <Help />;
    case "settings":
      return <Settings />;
  }
}

const findings = signal<Finding[] | null>(null);
const doctorFailed = signal<string | null>(null);

function Help(): JSX.Element {
  useEffect(() => void examine(), []);
  return (
    <>
      <div class="side-header">
        <h2>Help</h2>
      </div>
      <div class="scroll">
        <Section title="How it works">
          <ol class="prose steps">
            <li>Paste C or PyTorch, or open an example. Sizes and extents are inferred; correct them under Inputs.</li>
            <li>Translate. Each turn writes a CUDA candidate, compiles it with nvcc and runs it.</li>
            <li>
              Every candidate is compared with your own program in float64, on inputs it has not seen. Evidence shows what was
              checked and what each line costs.
            </li>
            <li>The best turn is kept. Improve it further, or download the .cu.</li>
          </ol>
        </Section>
        <Section title="Keys">
          <KeyTable />
          <p class="prose muted">
            In an editor, Ctrl+M (on a Mac Ctrl+Shift+M) makes Tab leave the editor instead of indenting.
          </p>
        </Section>
        <Section title="This machine">
          {doctorFailed.value ? <p class="empty">{doctorFailed.value}</p> : null}
          {findings.value === null && !doctorFailed.value ? <p class="empty">Looking…</p> : null}
          <ul class="findings">
            {(findings.value ?? []).map((it) => (
              <li key={it.name}>
                <SignView sign={{ shape: it.ok ? "●" : "○", word: it.name, tone: it.ok ? "good" : "warn" }} />
                <div class="muted">{it.detail}</div>
                {!it.ok && it.how ? <div>{it.how}</div> : null}
              </li>
            ))}
          </ul>
        </Section>
        <p class="empty">
          Kernelwright {bootstrap.value?.version} · <a href="/api/v1/docs">API reference</a>
        </p>
      </div>
    </>
  );
}

async function examine(): Promise<void> {
  doctorFailed.value = null;
  try {
    findings.value = await getDoctor();
  } catch (error) {
    const unknown = error instanceof ApiError && error.status === 404;
    doctorFailed.value = unknown
      ? "This server does not say. On its own machine, kernelwright doctor does."
      : error instanceof Error
        ? error.message
        : String(error);
  }
}

const THEMES: [ThemeChoice, string][] = [
  ["system", "As the system"],
  ["dark", "Dark"],
  ["light", "Light"],
  ["high-contrast", "High contrast"],
];

function Settings(): JSX.Element {
  return (
    <>
      <div class="side-header">
        <h2>Settings</h2>
      </div>
      <div class="scroll">
        <Section title="Theme">
          <div class="choices" role="radiogroup" aria-label="Theme">
            {THEMES.map(([choice, name]) => (
              <label key={choice}>
                <input
                  type="radio"
                  name="theme"
                  checked={layout.value.theme === choice}
                  onChange={() => setLayout({ theme: choice })}
                />
                {name}
              </label>
            ))}
          </div>
        </Section>
        <Section title="Keyboard">
          <div class="choices">
            <label>
              <input
                type="checkbox"
                checked={layout.value.singleKeys}
                onChange={(event) => setLayout({ singleKeys: event.currentTarget.checked })}
              />
              Single keys, such as ? for the list of keys
            </label>
          </div>
        </Section>
        <Section title="Layout">
          <div class="choices">
            <button type="button" class="secondary" onClick={resetLayout}>
              Reset the layout
            </button>
            <button type="button" class="secondary" onClick={() => execute("palette")}>
              All actions
            </button>
          </div>
        </Section>
      </div>
    </>
  );
}
