// The service itself: who answers, by which configuration, and what whoever looks may do.

import { plural } from "../format";
import { useApi } from "../hooks";
import { useMe } from "../me";
import { Badge, Code, Problem } from "../parts/small";
import { href } from "../router";
import type { AgentRow } from "../shapes";

/** Tools of an agent; the rest is on their own page. */
const SHOWN = 24;

export interface ConfigurationState {
  current: boolean;
  environment: string | null;
  digest: string | null;
  file: string | null;
  problems: string[];
  restart_needed: string[];
}

export function ServicePage() {
  const { data: configuration, problem } = useApi<ConfigurationState>("/api/v1/configuration", 10_000);
  const { data: agents, problem: failed } = useApi<{ agents: AgentRow[] }>("/api/v1/agents");
  const me = useMe();
  return (
    <>
      <h1 tabIndex={-1}>Configuration</h1>
      <Problem text={problem ?? failed} />
      <h2>File</h2>
      {configuration ? <State state={configuration} /> : null}
      <h2>Agents</h2>
      {agents?.agents.map((agent) => (
        <section key={agent.name} class="card" aria-label={`Agent ${agent.name}`}>
          <div class="title"><h3>{agent.name}</h3>{agent.ready ? <Badge kind="good">ready</Badge> : <Badge kind="bad">no model</Badge>}</div>
          {agent.description ? <p>{agent.description}</p> : null}
          <dl class="told">
            <div><dt>Model</dt><dd><code>{agent.model_name ?? agent.model}</code></dd></div>
            <div><dt>{plural(agent.tools.length, "tool")}</dt><dd class="chips">{agent.tools.slice(0, SHOWN).map((tool) => <a key={tool} class="chip" href={href("tools", tool)}>{tool}</a>)}{agent.tools.length > SHOWN ? <a href={href("tools")}>{agent.tools.length - SHOWN} more</a> : null}</dd></div>
            {agent.problem ? <div><dt>Problem</dt><dd>{agent.problem}</dd></div> : null}
          </dl>
        </section>
      ))}
      <h2>You</h2>
      {me ? (
        <section class="card" aria-label="You">
          <dl class="told">
            <div><dt>Name</dt><dd>{me.id}</dd></div>
            <div><dt>Permissions</dt><dd class="chips">{me.permissions.length ? me.permissions.map((name) => <code key={name} class="chip">{name === "*" ? "everything" : name}</code>) : "what is yours, and nothing else"}</dd></div>
          </dl>
        </section>
      ) : null}
      {configuration ? <details class="raw"><summary>As the service tells it</summary><Code label="Configuration" value={configuration} /><Code label="Agents" value={agents?.agents ?? []} /></details> : null}
    </>
  );
}

function State({ state }: { state: ConfigurationState }) {
  const none = state.digest === null;
  return (
    <section class="card" aria-label="State">
      <div class="title">
        <h3>{none ? "No configuration file" : state.file ?? "The configuration file"}</h3>
        {none ? null : state.current ? <Badge kind="good">in force</Badge> : <Badge kind="bad">edit refused</Badge>}
      </div>
      {none ? <p>The service goes by its defaults and the options of its command line. A file <code>journeyman.yaml</code> can say the same, and more: <code>journeyman init</code> writes one.</p> : (
        <dl class="told">
          <div><dt>Environment</dt><dd>{state.environment ?? "none"}</dd></div>
          <div><dt>Fingerprint</dt><dd><code>{state.digest}</code></dd></div>
          {state.restart_needed.length ? <div><dt>After a restart</dt><dd>{state.restart_needed.join(", ")}</dd></div> : null}
        </dl>
      )}
      {state.problems.length ? <><p>What is wrong with the edit; what the file said before still holds:</p><ul>{state.problems.map((text) => <li key={text}>{text}</li>)}</ul></> : null}
    </section>
  );
}
