// Everything that waits for a person, wherever it was asked; what was decided, by whom and why; and what nobody decided.

import { useState } from "preact/hooks";
import { get } from "../api";
import { brief, plural, when } from "../format";
import { useAction, useApi, useSettled } from "../hooks";
import { visible } from "../json";
import { may, useMe } from "../me";
import { ApprovalCard, Arguments, Earlier } from "../parts/decision";
import { Badge, Empty, Problem } from "../parts/small";
import { go, href, useRoute } from "../router";
import type { Approvals, AskedApproval, Runs } from "../shapes";

const PAGE = 50;
const LISTS = { pending: "Pending", decided: "Decided", expired: "Expired" } as const;
type Listed = keyof typeof LISTS;

export function ApprovalsPage() {
  const { query } = useRoute();
  const shown = (query.get("list") ?? "pending") as Listed;
  const list: Listed = shown in LISTS ? shown : "pending";
  const [text, setText] = useState(query.get("q") ?? "");
  const wanted = useSettled(text.trim());
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Approvals</h1>
      </div>
      <div class="filters" role="search">
        <div class="tabs" role="group" aria-label="Which approvals">
          {Object.entries(LISTS).map(([name, label]) => (
            <button key={name} class="tab" aria-pressed={list === name} onClick={() => go("approvals", null, { replace: true, query: { list: name === "pending" ? "" : name, q: wanted } })}>{label}</button>
          ))}
        </div>
        <input type="search" aria-label="Search approvals" placeholder="Search tools, people, arguments…" maxLength={200} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </div>
      {list === "pending" ? <Pending key={wanted} wanted={wanted} /> : <Past key={`${list} ${wanted}`} list={list} wanted={wanted} />}
    </>
  );
}

const pathOf = (list: Listed, wanted: string): string =>
  `/api/v1/approvals?status=${list}&limit=${PAGE}${wanted ? `&q=${encodeURIComponent(wanted)}` : ""}`;

function Pending({ wanted }: { wanted: string }) {
  const { data, problem, reload } = useApi<Approvals>(pathOf("pending", wanted), 2_000);
  const { data: unknown } = useApi<Runs>("/api/v1/runs?status=awaiting_resolution", 5_000);
  const decides = useMe()?.can_decide;
  const nothing = data && !data.approvals.length && (wanted || !unknown?.runs.length);
  return (
    <>
      <Problem text={problem} />
      {nothing ? (
        <Empty title={wanted ? "Nothing that waits mentions this" : decides === false ? "Nothing waits" : "Nothing waits for you"}>
          <p>Calls that cannot be undone ask here first, with what was read before, by whom it was asked, and how long there is to decide.</p>
        </Empty>
      ) : null}
      {data?.approvals.map((approval, at) => (
        <div key={approval.id} class="waiting">
          <About approval={approval} />
          <ApprovalCard approval={approval} inSession={false} decided={reload} open={at === 0} />
        </div>
      ))}
      {data && data.total > data.approvals.length ? <p class="quiet">{plural(data.total - data.approvals.length, "more")} after these.</p> : null}
      {wanted ? null : unknown?.runs.map((run) => (
        <div key={run.id} class="waiting"><a href={href("runs", run.id)}>{run.request || run.id}</a> – a call's outcome is unknown; open the run to settle it.</div>
      ))}
    </>
  );
}

/** What was asked of whom, and by whom; a link for those who may see the run. */
function About({ approval }: { approval: AskedApproval }) {
  const me = useMe();
  const seen = approval.principal?.id === me?.id || may(me, "runs:read") || may(me, "runs:write");
  const request = approval.request || approval.run_id;
  return (
    <p class="asked-about">
      {seen ? <a href={href("runs", approval.run_id)}>{request}</a> : <strong>{request}</strong>}
      <span class="quiet"> – asked {approval.principal ? <>by <strong>{visible(approval.principal.id)}</strong> </> : null}{approval.agent ? <>of {approval.agent} </> : null}{when(approval.requested_at)}</span>
    </p>
  );
}

const DECIDED: Record<string, [string, string]> = {
  approved: ["Approved", "good"], denied: ["Denied", "bad"], expired: ["Expired", "warn"], superseded: ["Withdrawn", "plain"], pending: ["Waits", "warn"],
};

function Past({ list, wanted }: { list: Listed; wanted: string }) {
  const path = pathOf(list, wanted);
  const { data, problem } = useApi<Approvals>(path, 5_000);
  const [older, setOlder] = useState<Approvals | null>(null);
  const { busy, problem: failed, act } = useAction();
  const first = data?.approvals ?? [];
  const rows = [...first, ...(older?.approvals ?? []).filter((row) => !first.some(({ id }) => id === row.id))];
  const next = older ? older.next_after : data?.next_after;
  const more = () => act(async () => {
    const page = await get<Approvals>(`${path}&after=${encodeURIComponent(next!)}`);
    setOlder((old) => ({ ...page, approvals: [...(old?.approvals ?? []), ...page.approvals] }));
  });
  return (
    <>
      <Problem text={problem ?? failed} />
      {data ? <p class="quiet" role="status">{plural(data.total, "approval")}</p> : null}
      {data && !rows.length ? <Empty title={wanted ? "No decision mentions this" : list === "decided" ? "Nothing was decided yet" : "Nothing has expired"}><p>{list === "decided" ? "Who allowed or refused what, and why, is kept here." : "What nobody decided in time was refused; it is kept here."}</p></Empty> : null}
      <ul class="list">{rows.map((approval) => <li key={approval.id}><Decided approval={approval} /></li>)}</ul>
      {next ? <div class="buttons"><button disabled={busy} onClick={() => void more()}>Show more</button></div> : null}
    </>
  );
}

function Decided({ approval }: { approval: AskedApproval }) {
  const [open, setOpen] = useState(false);
  const [label, kind] = DECIDED[approval.status] ?? [approval.status, "plain"];
  return (
    <details class="decided-line" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="line">
        <Badge kind={kind}>{label}</Badge>
        <span class="what"><span class="request">{approval.about ? visible(approval.about) : <><code>{approval.tool_name}</code> {brief(approval.arguments)}</>}</span>
          <span class="quiet">{[approval.decided_by ? `by ${visible(approval.decided_by)}` : "", approval.principal ? `for ${visible(approval.principal.id)}` : "", approval.reason ? `“${visible(approval.reason)}”` : ""].filter(Boolean).join(" · ")}</span></span>
        <span class="quiet time">{when(approval.decided_at ?? approval.requested_at)}</span>
      </summary>
      {open ? (
        <div class="inside">
          <About approval={approval} />
          <p><code>{approval.tool_name}</code>{approval.question ? <> asked: {visible(approval.question.message)}</> : null}</p>
          <Arguments data={approval.arguments} sources={approval.grounding ?? []} />
          <Earlier id={approval.id} />
        </div>
      ) : null}
    </details>
  );
}
