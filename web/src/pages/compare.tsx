// Two runs side by side: what differs in what became of them, what they took, and what they called with what.

import { ended } from "../events";
import { brief, duration, money } from "../format";
import { useApi } from "../hooks";
import { Markdown } from "../markdown";
import { OutcomeBadge, standing } from "../parts/outcome";
import { Badge, Problem } from "../parts/small";
import { calls, type CallView } from "../reduce";
import { href } from "../router";
import { useRun } from "../runs";
import type { RunDetails } from "../shapes";

export function ComparePage({ ids }: { ids: [string, string] }) {
  const sides = ids.map((id) => ({ ...useRun(id), api: useApi<RunDetails>(`/api/v1/runs/${encodeURIComponent(id)}`) }));
  const rows = sides.map((side) => side.api.data?.run);
  const made = sides.map((side) => calls(side.run));
  const length = Math.max(...made.map((all) => all.length));
  const line = (label: string, told: (at: 0 | 1) => string) => {
    const [a, b] = [told(0), told(1)];
    return <tr key={label} class={a === b ? "" : "differs"}><th scope="row">{label}</th><td>{a || "–"}</td><td>{b || "–"}</td></tr>;
  };
  const took = (at: 0 | 1): string => {
    const row = rows[at];
    return row && ended(row.status) ? duration(Date.parse(row.updated_at) - Date.parse(row.created_at)) : "";
  };
  return (
    <div class="wide">
      <p class="back"><a href={href("runs")}>← All runs</a></p>
      <h1 tabIndex={-1}>Two runs compared</h1>
      <Problem text={sides.map((side) => side.problem ?? side.api.problem).find(Boolean) ?? null} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
        <table class="compared">
          <thead>
            <tr><th scope="col">Run</th>{sides.map((side, at) => (
              <th key={at} scope="col"><a href={href("runs", ids[at]!)}>{side.api.data?.task ?? ids[at]}</a>{" "}{rows[at] ? <OutcomeBadge status={rows[at].status} outcome={rows[at].outcome} /> : null}</th>
            ))}</tr>
          </thead>
          <tbody>
            {line("Status", (at) => (rows[at] ? standing(rows[at]!) : ""))}
            {line("Agent", (at) => rows[at]?.agent ?? "")}
            {line("For", (at) => rows[at]?.principal ?? "")}
            {line("Model", (at) => rows[at]?.model ?? "")}
            {line("Took", took)}
            {line("Cost", (at) => money(rows[at]?.cost ?? null))}
            {line("Tokens", (at) => (rows[at]?.input_tokens == null ? "" : `${rows[at]!.input_tokens!.toLocaleString()} in, ${(rows[at]!.output_tokens ?? 0).toLocaleString()} out`))}
            {Array.from({ length }, (_, number) => {
              const [a, b] = [made[0]![number], made[1]![number]];
              return <tr key={`call ${number}`} class={toldOf(a) === toldOf(b) ? "" : "differs"}><th scope="row">Call {number + 1}</th><td><Called call={a} /></td><td><Called call={b} /></td></tr>;
            })}
            <tr class={sides[0]!.run.answer?.text === sides[1]!.run.answer?.text ? "" : "differs"}>
              <th scope="row">Answer</th>{sides.map((side, at) => <td key={at}>{side.run.answer ? <Markdown text={side.run.answer.text} /> : "–"}</td>)}
            </tr>
          </tbody>
        </table>
      </div>
      <p class="quiet">What differs is marked at its side.</p>
    </div>
  );
}

const KINDS: Partial<Record<CallView["status"], "good" | "warn" | "busy">> = { success: "good", pending: "warn", running: "busy" };

const toldOf = (call: CallView | undefined): string => (call ? `${call.tool} ${brief(call.arguments)} ${call.status}` : "");

function Called({ call }: { call: CallView | undefined }) {
  if (!call) return <>–</>;
  return <><code>{call.tool}</code> <Badge kind={KINDS[call.status] ?? "bad"}>{call.status}</Badge><br /><span class="quiet">{brief(call.arguments)}</span></>;
}
