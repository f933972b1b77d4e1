// Playbooks: what was learned in a domain, shown as the little conversation that runs are shown, and how it came about.

import { send } from "../api";
import { percent, plural, points } from "../format";
import { useAction, useApi } from "../hooks";
import { History } from "../parts/history";
import { Intervals, wilson } from "../parts/plots";
import { Badge, Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { PlaybookView, Strategy, StrategyView } from "../shapes";

export function PlaybooksPage({ id }: { id: string | null }) {
  return id ? <OnePlaybook key={id} domain={id} /> : <AllPlaybooks />;
}

function AllPlaybooks() {
  const { data, problem } = useApi<{ domains: string[] }>("/api/v1/playbooks", 5_000);
  return (
    <>
      <h1 tabIndex={-1}>Playbooks</h1>
      <Problem text={problem} />
      {data && !data.domains.length ? <Empty title="Nothing learned yet">What worked in runs is kept here and shown to later ones. It is learned while the service runs where <code>learning</code> is on, or from what is in the store: <code>journeyman playbook learn</code></Empty> : null}
      <ul class="list">
        {data?.domains.map((domain) => (
          <li key={domain}><a class="line" href={href("playbooks", domain)}><span class="what">{domain}</span></a></li>
        ))}
      </ul>
    </>
  );
}

function OnePlaybook({ domain }: { domain: string }) {
  const path = `/api/v1/playbooks/${encodeURIComponent(domain)}`;
  const { data, problem, reload } = useApi<PlaybookView>(path, 5_000);
  const { busy, problem: failed, act } = useAction();
  const back = (to: number) =>
    act(async () => {
      await send("POST", `${path}/rollback`, { to });
      reload();
    });
  return (
    <>
      <p class="back"><a href={href("playbooks")}>← All playbooks</a></p>
      <h1 tabIndex={-1}>{domain}</h1>
      <Problem text={problem ?? failed} />
      {data?.strategies.map((view) => <One key={view.strategy.id} view={view} path={path} may={data.can_change} changed={reload} />)}
      {data && !data.strategies.length ? <Empty title="No strategies">Nothing here is yours or everybody's.</Empty> : null}
      {data?.pitfalls.length ? (
        <section class="card" aria-label="Pitfalls">
          <h2>Beware, and where to look</h2>
          <ul>
            {data.pitfalls.map((item) => (
              <li key={item.id}>{item.content} <span class="quiet">({plural(item.helpful_count, "time")})</span> <Runs ids={item.provenance} /></li>
            ))}
          </ul>
        </section>
      ) : null}
      {data?.history.length ? <History view={data} path={path} busy={busy} back={(to) => void back(to)} /> : null}
    </>
  );
}

const KINDS: Record<string, "good" | "warn" | "busy" | undefined> = { active: "good", quarantined: "warn", shadow: "busy" };

function One({ view, path, may, changed }: { view: StrategyView; path: string; may: boolean; changed: () => void }) {
  const { strategy } = view;
  const used = rates(strategy).some((rate) => !rate.none);
  const { busy, problem, act } = useAction();
  const settle = (state: string) =>
    act(async () => {
      await send("PATCH", `${path}/strategies/${encodeURIComponent(strategy.id)}`, { state });
      changed();
    });
  return (
    <section class="card" aria-label={`Strategy ${strategy.id}`}>
      <div class="title">
        <h2>{strategy.tool_sequence.join(" → ")}</h2>
        <Badge kind={KINDS[strategy.state]}>{strategy.state}</Badge>
      </div>
      <p class="quiet">{strategy.state_reason}</p>
      <Demonstration strategy={strategy} />
      {used ? <Intervals title="Runs that were good, with 95 % intervals" show={percent} rows={rates(strategy)} /> : null}
      <h3>Effect</h3>
      {view.effect ? (
        <Intervals title="Good runs with it, minus good holdouts, in points with the 95 % interval" show={points}
          rows={[{ name: "with it − without", mean: view.effect[0], low: view.effect[1], high: view.effect[2] }]} />
      ) : null}
      <p>{used ? view.effect_text : "Its effect is not known yet: no run has used it."}</p>
      <p class="quiet">
        Labels: {Object.entries(strategy.label_sources).map(([source, count]) => `${count} by ${source}`).join(", ") || "none"}
        {strategy.models.length ? `; learned from ${strategy.models.join(", ")}` : ""}
        {strategy.principal_id ? `; only for ${strategy.principal_id}` : ""}
      </p>
      <Runs ids={strategy.provenance} />
      {may ? (
        <div class="buttons">
          {strategy.state === "active"
            ? <button class="danger" disabled={busy} onClick={() => void settle("quarantined")}>Quarantine</button>
            : <button disabled={busy} onClick={() => void settle("active")}>Activate</button>}
        </div>
      ) : null}
      <Problem text={problem} />
    </section>
  );
}

/** The latest runs that something was learned from. */
function Runs({ ids }: { ids: string[] }) {
  const kept = ids.filter((id) => id.startsWith("run_")).slice(-3);
  if (!kept.length) return null;
  return <span class="quiet">from {kept.map((id) => <a key={id} href={href("runs", id)}>{` ${id.slice(-6)} `}</a>)}</span>;
}

function Demonstration({ strategy }: { strategy: Strategy }) {
  const shown = strategy.demonstration;
  if (!shown) return <p>{strategy.content}</p>;
  return (
    <ol class="demonstration" aria-label="Demonstration">
      <li class="asked">{shown.request}</li>
      {shown.calls.map((call, at) => (
        <li key={at}>
          <code>{call.tool_name}({Object.entries(call.arguments).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")})</code>
          {call.effect ? <Badge>changes something</Badge> : null}
          <p class="quiet">→ {call.result || "a result that nothing after it used"}</p>
        </li>
      ))}
      {shown.closing ? <li>{shown.closing}</li> : null}
    </ol>
  );
}

function rates(strategy: Strategy) {
  const used = strategy.recent.filter(Boolean).length;
  const sides: [string, number, number][] = [
    ["counted", strategy.helpful_count, strategy.helpful_count + strategy.harmful_count],
    ["latest uses", used, strategy.recent.length],
    ["holdouts", strategy.holdout_helpful, strategy.holdout_helpful + strategy.holdout_harmful],
  ];
  return sides.map(([name, good, total]) => {
    const [low, high] = wilson(good, total);
    return { name: `${name} (${plural(total, "run")})`, mean: good / (total || 1), low, high, none: !total };
  });
}
