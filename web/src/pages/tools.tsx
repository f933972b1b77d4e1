// The tools: what they do, how risky they are, how they have fared, and a place to call one by hand.

import { useState } from "preact/hooks";
import { send } from "../api";
import type { CallRecord, Data } from "../events";
import { duration, percent, plural } from "../format";
import { useAction, useApi } from "../hooks";
import { visible } from "../json";
import { Sparkline } from "../parts/plots";
import { Pictures } from "../parts/files";
import { ArgumentsForm } from "../parts/schema-form";
import { Badge, Code, Empty, Problem, RiskBadge, useJson } from "../parts/small";
import { resultOf } from "../reduce";
import { href } from "../router";
import type { ToolHealth, ToolRow } from "../shapes";

const SPANS: [number, string][] = [[3_600, "hour"], [86_400, "day"], [604_800, "week"]];

export function ToolsPage({ id }: { id: string | null }) {
  const [seconds, setSeconds] = useState(86_400);
  const [words, setWords] = useState("");
  const { data, problem } = useApi<{ tools: ToolRow[] }>("/api/v1/tools");
  const { data: health } = useApi<{ tools: ToolHealth[] }>(`/api/v1/health/tools?seconds=${seconds}`, 5_000);
  const found = new Map(health?.tools.map((item) => [item.tool, item]));
  if (id) {
    const tool = data?.tools.find((item) => item.name === id);
    if (tool) return <OneTool key={id} tool={tool} health={found.get(id)} />;
    if (!data) return <><h1 tabIndex={-1}>Tools</h1><Problem text={problem} /></>;
    return <><h1 tabIndex={-1}>Tools</h1><Empty title={`There is no tool '${visible(id)}'`}><a href={href("tools")}>All tools</a></Empty></>;
  }
  const wanted = data?.tools.filter((tool) => `${tool.name} ${tool.description} ${tool.category}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Tools</h1>
        <label>Health of the last{" "}
          <select value={seconds} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>
            {SPANS.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
          </select>
        </label>
      </div>
      <Problem text={problem} />
      <div class="field">
        <label for="find" class="sr-only">Find tools</label>
        <input id="find" type="search" placeholder="Find tools…" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </div>
      <ul class="list">
        {wanted?.map((tool) => (
          <li key={tool.name}>
            <a class="line tool-line" href={href("tools", tool.name)}>
              <span class="what"><code>{tool.name}</code> <span class="quiet">{firstSentence(tool.description)}</span></span>
              <span class="marks"><ToolBadges tool={tool} /></span>
              <Health health={found.get(tool.name)} />
            </a>
          </li>
        ))}
      </ul>
      {wanted && !wanted.length ? <Empty title="No tool fits these words" /> : null}
    </>
  );
}

const firstSentence = (text: string): string => text.split(/(?<=\.)\s|\n/)[0] ?? "";

function ToolBadges({ tool }: { tool: ToolRow }) {
  return (
    <>
      <RiskBadge risk={tool.risk} />
      {tool.read_only ? <Badge title="Changes nothing">read-only</Badge> : null}
      {tool.enabled ? null : <Badge kind="bad">disabled</Badge>}
      {tool.permitted ? null : <Badge kind="warn" title={`Needs ${tool.permissions.join(", ")}`}>not permitted</Badge>}
      {tool.deprecated ? <Badge kind="warn" title={typeof tool.deprecated === "string" ? tool.deprecated : undefined}>deprecated</Badge> : null}
    </>
  );
}

function Health({ health }: { health: ToolHealth | undefined }) {
  if (!health) return <span class="health none quiet">not called</span>;
  const failures = health.calls - Math.round(health.calls * health.success_rate);
  const rate = health.success_rate;
  return (
    <span class="health">
      <Sparkline history={health.history} label={`${plural(health.calls, "call")}, ${failures} failed`} />
      <span class={rate < 0.8 ? "rate bad" : rate < 0.97 ? "rate warn" : "rate good"}>{percent(rate)}</span>
      <span class="quiet">{plural(health.calls, "call")} · p95 {duration(health.p95_ms)}</span>
    </span>
  );
}

function OneTool({ tool, health }: { tool: ToolRow; health: ToolHealth | undefined }) {
  const properties = Object.entries(tool.parameters.properties ?? {});
  return (
    <>
      <p class="back"><a href={href("tools")}>← All tools</a></p>
      <div class="title"><h1 tabIndex={-1}><code>{tool.name}</code></h1><span class="marks"><ToolBadges tool={tool} /></span></div>
      <p class="prose">{tool.description}</p>
      <p class="quiet facts">
        <span>{tool.category}</span><span>version {tool.version}</span><span>given up after {tool.timeout_seconds} s</span>
        {tool.idempotent ? <span>safe to repeat</span> : null}
      </p>
      <Health health={health} />
      <h2>Arguments</h2>
      {properties.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Arguments">
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
            <tbody>
              {properties.map(([name, schema]) => (
                <tr key={name}>
                  <th scope="row"><code>{name}</code>{tool.parameters.required?.includes(name) ? <span class="quiet"> required</span> : null}</th>
                  <td><code>{typeOf(schema)}</code></td>
                  <td>{String(schema.description ?? "")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : <p class="quiet">None.</p>}
      <h2>Call it</h2>
      <TryIt tool={tool} />
    </>
  );
}

function typeOf(schema: Data): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((item) => JSON.stringify(item)).join(" | ");
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as Data[]).map(typeOf).join(" | ");
  if (schema.type === "array") return `${schema.items ? typeOf(schema.items as Data) : "any"}[]`;
  return typeof schema.type === "string" ? schema.type : "any";
}

interface Called {
  run_id: string;
  status: string;
  record: CallRecord | null;
}

function TryIt({ tool }: { tool: ToolRow }) {
  const blank = Object.fromEntries((tool.parameters.required ?? []).map((name) => [name, ""]));
  const field = useJson(JSON.stringify(blank, null, 2), "object");
  const [called, setCalled] = useState<Called | null>(null);
  const { busy, problem, act } = useAction();
  const call = () => {
    const given = field.read();
    if (given === undefined) return;
    setCalled(null);
    void act(async () => setCalled(await send<Called>("POST", `/api/v1/tools/${encodeURIComponent(tool.name)}/call`, { arguments: given })));
  };
  return (
    <div class="try">
      <ArgumentsForm id="arguments" label="Arguments as JSON" field={field} schema={tool.parameters} />
      <div class="buttons"><button class="primary" disabled={busy || !tool.enabled} onClick={call}>{busy ? "Calling…" : "Call"}</button></div>
      <p class="quiet">It passes the same checks as a call by an agent, approval included.</p>
      <Problem text={problem} />
      {called ? (
        <div role="status">
          {called.record?.error ? <Code label={`Error ${called.record.error.code}`} value={called.record.error.message} /> : null}
          {called.record?.status === "success" ? <><Pictures of={called.record.result} /><Code label="Result" value={resultOf(called.record)} /></> : null}
          {called.record ? null : <p>It waits for a person.</p>}
          <a href={href("runs", called.run_id)}>Open the run</a>
        </div>
      ) : null}
    </div>
  );
}
