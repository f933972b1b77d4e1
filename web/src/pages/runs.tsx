// All runs, found by words, people, agents, tools, how they stand and when; and the way to one of them.

import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api";
import { ended, type RunStatus } from "../events";
import { duration, money, plural, when } from "../format";
import { useApi, useSettled } from "../hooks";
import { changes, may, useMe } from "../me";
import { OneRun } from "../parts/one-run";
import { OUTCOMES, OutcomeBadge, standing } from "../parts/outcome";
import { Confirm, Empty, Problem } from "../parts/small";
import { Windowed, usePages } from "../parts/windowed";
import { STATUS } from "../reduce";
import { go, href, useRoute } from "../router";
import type { AgentRow, RunRow, Runs, ToolRow } from "../shapes";
import { ComparePage } from "./compare";

const LOOK_MS = 3_000;
const UNFINISHED = (Object.keys(STATUS) as RunStatus[]).filter((status) => !ended(status) && status !== "unknown");
const FIELDS = ["q", "principal", "agent", "tool", "status", "outcome", "time"] as const;
type Filter = Record<(typeof FIELDS)[number], string>;

export function RunsPage({ id }: { id: string | null }) {
  if (id?.includes("..")) return <ComparePage key={id} ids={id.split("..") as [string, string]} />;
  return id ? <OneRun key={id} id={id} /> : <AllRuns />;
}

/** Spans of time in whole days of whoever looks, so that an address means the same a minute later. */
const TIMES: Record<string, { label: string; from: number; to?: number }> = {
  hour: { label: "last hour", from: -1 / 24 },
  today: { label: "today", from: 0 },
  yesterday: { label: "yesterday", from: -1, to: 0 },
  week: { label: "last 7 days", from: -7 },
  month: { label: "last 30 days", from: -30 },
};

function spanOf(time: string): Record<string, string> {
  const span = TIMES[time];
  if (!span) return {};
  const midnight = new Date(new Date().setHours(0, 0, 0, 0));
  const at = (days: number): string => {
    const day = new Date(time === "hour" ? Math.floor(Date.now() / 60_000) * 60_000 : midnight);
    if (Number.isInteger(days)) day.setDate(day.getDate() + days);
    else day.setTime(day.getTime() + days * 86_400_000);
    return day.toISOString();
  };
  return { since: at(span.from), ...(span.to === undefined ? {} : { until: at(span.to) }) };
}

function pathOf(filter: Filter): string {
  const { status, time, ...plain } = filter;
  const query = new URLSearchParams(Object.entries({ ...plain, ...spanOf(time) }).filter(([, value]) => value));
  const wanted = status === "unfinished" ? UNFINISHED : status ? [status] : [];
  for (const name of wanted) query.append("status", name);
  return `/api/v1/runs?${query}`;
}

function AllRuns() {
  const { query } = useRoute();
  const filter = Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""])) as Filter;
  const [text, setText] = useState(filter.q);
  const [person, setPerson] = useState(filter.principal);
  const [picked, setPicked] = useState<string[]>([]);
  const me = useMe();
  const settled = useSettled(text.trim());
  const whose = useSettled(person.trim());
  const change = (changed: Partial<Filter>): void => go("runs", null, { replace: true, query: { ...filter, ...changed } });
  useEffect(() => {
    if (settled !== filter.q || whose !== filter.principal) change({ q: settled, principal: whose });
  }, [settled, whose]);
  const path = pathOf(filter);
  const pages = usePages<RunRow>(path, (answer: Runs) => ({ rows: answer.runs, total: answer.total }), LOOK_MS);
  const narrowed = FIELDS.some((name) => filter[name]);
  return (
    <div class="wide">
      <div class="title">
        <h1 tabIndex={-1}>Runs</h1>
        <span class="quiet" role="status">{pages.total === null ? "" : `${plural(pages.total, "run")}${narrowed ? " found" : ""}`}</span>
        <span class="doings">
          {picked.length === 2 ? <a class="button" href={href("runs", picked.join(".."))}>Compare the two</a> : null}
          <CancelAll filter={filter} total={pages.total} done={pages.reload} />
        </span>
      </div>
      <Filters filter={filter} change={change} text={text} setText={setText} person={person} setPerson={setPerson} everybody={may(me, "runs:read")} />
      <Problem text={pages.problem} />
      {pages.total === 0 ? (
        narrowed
          ? <Empty title="No run fits"><p>Ask for less: <button class="small" onClick={() => { setText(""); setPerson(""); go("runs"); }}>Show all runs</button></p></Empty>
          : <Empty title="No runs yet"><p>Whatever is asked, by anybody and from anywhere, appears in this list: here, over the API, in Slack, on the command line.</p><p><a href={href("chat")}>Ask for something</a></p></Empty>
      ) : null}
      <Windowed label="Runs" pages={pages} rem={3.6} narrowRem={5.9}>
        {(run, _, focus) => <RunLine run={run} focus={focus} picked={picked.includes(run.id)} pick={(on) => setPicked((old) => (on ? [...old, run.id].slice(-2) : old.filter((id) => id !== run.id)))} />}
      </Windowed>
    </div>
  );
}

function Filters({ filter, change, text, setText, person, setPerson, everybody }: {
  filter: Filter; change: (changed: Partial<Filter>) => void; text: string; setText: (text: string) => void;
  person: string; setPerson: (text: string) => void; everybody: boolean;
}) {
  const { data: agents } = useApi<{ agents: AgentRow[] }>("/api/v1/agents");
  const { data: tools } = useApi<{ tools: ToolRow[] }>("/api/v1/tools");
  const select = (name: keyof Filter, label: string, choices: [string, string][]) => (
    <label>{label}{" "}
      <select value={filter[name]} onChange={(event) => change({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {filter[name] && !choices.some(([value]) => value === filter[name]) ? <option>{filter[name]}</option> : null}
        {choices.map(([value, shown]) => <option key={value} value={value}>{shown}</option>)}
      </select>
    </label>
  );
  return (
    <div class="filters" role="search">
      <input type="search" aria-label="Search runs" placeholder="Search requests, people, ids…" maxLength={200} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      {select("status", "Status", [["unfinished", "unfinished"], ...Object.entries(STATUS).filter(([name]) => name !== "unknown").map(([name, label]) => [name, label.toLowerCase()] as [string, string])])}
      {select("outcome", "Outcome", OUTCOMES.map(([name, { label }]) => [name, label.toLowerCase()]))}
      {select("time", "Time", Object.entries(TIMES).map(([name, { label }]) => [name, label]))}
      {select("agent", "Agent", (agents?.agents ?? []).map(({ name }) => [name, name]))}
      {select("tool", "Tool", (tools?.tools ?? []).map(({ name }) => [name, name]))}
      {everybody ? <label>Person <input value={person} size={8} maxLength={255} onInput={(event) => setPerson(event.currentTarget.value)} /></label> : null}
    </div>
  );
}

function RunLine({ run, focus, picked, pick }: {
  run: RunRow; focus: { tabIndex: number; "data-row": number }; picked: boolean; pick: (on: boolean) => void;
}) {
  const over = ended(run.status);
  const took = over ? duration(Date.parse(run.updated_at) - Date.parse(run.created_at)) : "";
  const request = run.request || run.id;
  return (
    <div class="run-line">
      <input type="checkbox" tabIndex={focus.tabIndex} checked={picked} aria-label={`Compare: ${request}`} title="Choose two to compare them" onChange={(event) => pick(event.currentTarget.checked)} />
      <a class="line" {...focus} href={href("runs", run.id)} aria-label={`${request}, ${over ? run.outcome ?? "" : ""} ${standing(run)}`}>
        <OutcomeBadge status={run.status} outcome={run.outcome} />
        <span class="what"><span class="request">{request}</span><span class="quiet">{took ? <span class="figures">{[money(run.cost), took].filter(Boolean).join(" · ")} · </span> : null}{run.agent}{run.principal ? ` · ${run.principal}` : ""} · {standing(run)}</span></span>
        <span class="quiet number">{money(run.cost)}</span>
        <span class="quiet number">{took}</span>
        <span class="quiet time">{when(run.created_at)}</span>
      </a>
    </div>
  );
}

/** Ends everything unfinished that the list is narrowed down to: all runs of a person, of an agent, of a tool. */
function CancelAll({ filter, total, done }: { filter: Filter; total: number | null; done: () => void }) {
  const [asking, setAsking] = useState(false);
  const [left, setLeft] = useState<number | null>(null);
  const me = useMe();
  const open = filter.status && filter.status !== "unfinished" && ended(filter.status as RunStatus) ? null : pathOf({ ...filter, status: filter.status || "unfinished" });
  const { data } = useApi<Runs>(open && total ? `${open}&limit=1` : null, LOOK_MS);
  if (!data?.total || !me) return null;
  const cancel = async (): Promise<void> => {
    const rows: RunRow[] = [];
    for (let after = ""; ; ) {
      const page = await get<Runs>(`${open}&limit=200${after ? `&after=${encodeURIComponent(after)}` : ""}`);
      rows.push(...page.runs.filter((run) => changes(me, run.principal)));
      if (!page.next_after) break;
      after = page.next_after;
    }
    setLeft(rows.length);
    for (const run of rows) {
      // One that has ended meanwhile needs nothing.
      await send("POST", `/api/v1/runs/${run.id}/cancel`).catch((error) => { if (error.problem?.status !== 409) throw error; });
      setLeft((n) => (n ?? 1) - 1);
    }
    setAsking(false);
    setLeft(null);
    done();
  };
  return (
    <>
      <button class="danger small" onClick={() => setAsking(true)}>Cancel {data.total.toLocaleString()} unfinished…</button>
      {asking ? (
        <Confirm title={`Cancel ${plural(data.total, "unfinished run")}?`} verb="Cancel them" no={() => setAsking(false)} yes={cancel}>
          <p>Queued ones, those under way and those that wait for a person: {filter.principal ? `all of ${filter.principal} ` : "all "}that this list shows. What their calls have done stays done.</p>
          {left === null ? null : <p role="status">{left} left…</p>}
        </Confirm>
      ) : null}
    </>
  );
}
