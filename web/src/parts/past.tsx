// Going through a run step by step: what the model saw, what it said, why the gate decided so; and from there another
// way, today's rules, or a test.

import { useState } from "preact/hooks";
import { get, send } from "../api";
import { plural } from "../format";
import { useAction, useApi } from "../hooks";
import { go } from "../router";
import type { ReplayReport, RunRow, StepDetails, WrittenTest } from "../shapes";
import { Badge, Code, Problem } from "./small";

const GATES: Record<string, "good" | "warn" | "bad"> = { free: "good", asked: "warn", denied: "bad" };

export function Past({ id, steps, forks }: { id: string; steps: number; forks: boolean }) {
  const [step, setStep] = useState(1);
  const [open, setOpen] = useState(false);
  if (!steps) return null;
  const path = `/api/v1/runs/${encodeURIComponent(id)}`;
  return (
    <details class="past" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Step through, replay, fork</summary>
      {open ? (
        <>
          <div class="buttons">
            <button class="small" disabled={step <= 1} onClick={() => setStep(step - 1)}>← Before</button>
            <label>
              Step{" "}
              <input type="range" min={1} max={steps} value={step} aria-valuetext={`Step ${step} of ${steps}`} onInput={(event) => setStep(Number(event.currentTarget.value))} />{" "}
              {step} of {steps}
            </label>
            <button class="small" disabled={step >= steps} onClick={() => setStep(step + 1)}>Next →</button>
          </div>
          <OneStep key={step} path={path} step={step} />
          {forks ? <Fork key={`fork ${step}`} path={path} step={step} /> : null}
          <Today id={id} />
          <MakeTest path={path} id={id} />
        </>
      ) : null}
    </details>
  );
}

function OneStep({ path, step }: { path: string; step: number }) {
  const { data, problem } = useApi<StepDetails>(`${path}/steps/${step}`);
  if (!data) return <Problem text={problem} />;
  return (
    <section aria-label={`Step ${step}`}>
      <details>
        <summary>What the model saw: {plural(data.messages.length, "message")}, {plural(data.tools.length, "tool")}</summary>
        <ol class="seen">{data.messages.map((message, at) => <li key={at}><Badge>{message.role}</Badge><pre>{message.content}</pre></li>)}</ol>
        <p class="quiet">Offered: {data.tools.join(", ") || "no tool"}</p>
      </details>
      {data.text ? <p>It said: {data.text}</p> : null}
      <ul class="list" aria-label="What was decided">
        {data.calls.map((call) => (
          <li key={call.call_id}>
            <code>{call.tool_name}</code> <Badge kind={GATES[call.then]}>{call.then}</Badge>{" "}
            {call.today === call.then ? null : <>today <Badge kind={GATES[call.today ?? ""]}>{call.today ?? "unknown"}</Badge>{" "}</>}
            <span class="quiet">{call.rule}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Fork({ path, step }: { path: string; step: number }) {
  const [say, setSay] = useState("");
  const { busy, problem, act } = useAction();
  const begin = () =>
    act(async () => {
      const fork = await send<RunRow>("POST", `${path}/fork`, { at: step, ...(say.trim() ? { say } : {}) });
      go("runs", fork.id);
    });
  return (
    <form class="buttons" onSubmit={(event) => { event.preventDefault(); void begin(); }}>
      <label>Say something first <input value={say} placeholder="nothing" onInput={(event) => setSay(event.currentTarget.value)} /></label>
      <button class="small" disabled={busy}>Fork here</button>
      <span class="quiet">A new run shares the past before step {step}. Nothing of it is done again.</span>
      <Problem text={problem} />
    </form>
  );
}

function Today({ id }: { id: string }) {
  const [rules, setRules] = useState("");
  const [report, setReport] = useState<ReplayReport | null>(null);
  const { busy, problem, act } = useAction();
  const replay = () => act(async () => setReport(await send<ReplayReport>("POST", "/api/v1/runs/replay", { runs: [id], ...(rules.trim() ? { policy: JSON.parse(rules) } : {}) })));
  return (
    <form class="buttons" onSubmit={(event) => { event.preventDefault(); void replay(); }}>
      <label>Replay with rules <input value={rules} placeholder='{"grounding": "ask"}' spellcheck={false} onInput={(event) => setRules(event.currentTarget.value)} /></label>
      <button class="small" disabled={busy}>Replay</button>
      <span class="quiet">No effect: recorded calls pass the gate. Without rules, today's.</span>
      <Problem text={problem} />
      {report ? <div role="status"><strong>{report.verdict}</strong><ul>{report.findings.map((item, at) => <li key={at}>{item.change.replaceAll("_", " ")}: <code>{item.tool}</code> <span class="quiet">{item.rule}</span></li>)}</ul></div> : null}
    </form>
  );
}

function MakeTest({ path, id }: { path: string; id: string }) {
  const [made, setMade] = useState<WrittenTest | null>(null);
  const { busy, problem, act } = useAction();
  const link = (name: string, text: string, type: string) => <a class="button small" download={name} href={`data:${type};charset=utf-8,${encodeURIComponent(text)}`}>{name}</a>;
  return (
    <div class="buttons">
      <button class="small" disabled={busy} onClick={() => void act(async () => setMade(await get<WrittenTest>(`${path}/test`)))}>Make a test</button>
      <Problem text={problem} />
      {made ? (
        <div role="status">
          <p>Save both, look through the recording ({plural(made.replaced, "secret")} replaced), and run pytest: {link(`test_${id}.py`, made.test, "text/x-python")} {link(`recordings/${id}.json`, made.recording, "application/json")}</p>
          <Code label="The test" value={made.test} />
        </div>
      ) : null}
    </div>
  );
}
