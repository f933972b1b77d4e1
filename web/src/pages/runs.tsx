// All runs, and one of them with its timeline.

import { useState } from "preact/hooks";
import { send } from "../api";
import { ended } from "../events";
import { duration, plural, when } from "../format";
import { useAction, useApi, useTask } from "../hooks";
import { RatingButtons } from "../parts/rating";
import { RunCards } from "../parts/run";
import { Badge, Code, Empty, Problem, StatusBadge } from "../parts/small";
import { Timeline } from "../parts/timeline";
import { STATUS, doing } from "../reduce";
import { href } from "../router";
import { followAgain, useRun } from "../runs";
import type { RunRow } from "../shapes";

const PAGE = 30;

export function RunsPage({ id }: { id: string | null }) {
  return id ? <OneRun key={id} id={id} /> : <AllRuns />;
}

function AllRuns() {
  const [status, setStatus] = useState("");
  const [page, setPage] = useState(0);
  const filter = status ? `&status=${status}` : "";
  const { data, problem } = useApi<{ runs: RunRow[] }>(`/api/v1/runs?limit=${PAGE}&offset=${page * PAGE}${filter}`, 3_000);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Runs</h1>
        <label>
          Status{" "}
          <select value={status} onChange={(event) => { setStatus(event.currentTarget.value); setPage(0); }}>
            <option value="">all</option>
            {Object.entries(STATUS).map(([name, label]) => <option key={name} value={name}>{label.toLowerCase()}</option>)}
          </select>
        </label>
      </div>
      <Problem text={problem} />
      {data && !data.runs.length ? <Empty title="No runs here">Whatever is asked, by anybody and from anywhere, appears in this list.</Empty> : null}
      <ul class="list">{data?.runs.map((run) => <li key={run.id}><RunLine run={run} /></li>)}</ul>
      {page || data?.runs.length === PAGE ? (
        <div class="buttons">
          <button disabled={!page} onClick={() => setPage(page - 1)}>Newer</button>
          <button disabled={(data?.runs.length ?? 0) < PAGE} onClick={() => setPage(page + 1)}>Older</button>
        </div>
      ) : null}
    </>
  );
}

function RunLine({ run }: { run: RunRow }) {
  const task = useTask(run.id);
  return (
    <a class="line" href={href("runs", run.id)}>
      <StatusBadge status={run.status} />
      <span class="what">{task || run.id}</span>
      <span class="quiet">{run.agent}{run.principal ? ` · ${run.principal}` : ""}</span>
      <span class="quiet time">{when(run.created_at)} · {duration(Date.parse(run.updated_at) - Date.parse(run.created_at))}</span>
    </a>
  );
}

function OneRun({ id }: { id: string }) {
  const { run, facts, problem } = useRun(id);
  const { busy, problem: failed, act } = useAction();
  const over = ended(run.status);
  const left = run.status === "running" || run.status === "queued" || run.status === "stuck";
  if (problem && !run.seq) {
    return (
      <>
        <p class="back"><a href={href("runs")}>← All runs</a></p>
        <h1 tabIndex={-1}>Run</h1>
        <Empty title="This run cannot be shown"><p>{problem}</p><p>It may have been deleted, or is not yours: ended runs are kept for some days only.</p></Empty>
      </>
    );
  }
  return (
    <>
      <p class="back"><a href={href("runs")}>← All runs</a></p>
      <div class="title">
        <h1 tabIndex={-1}>{run.task || "Run"}</h1>
        <StatusBadge status={run.status} />
        {over ? <RatingButtons runId={id} look /> : null}
      </div>
      <Problem text={problem ?? failed} />
      <p class="quiet facts">
        {run.startedAt === null ? null : <span>{when(run.startedAt)}</span>}
        {run.agent ? <span>agent {run.agent}</span> : null}
        {run.principal ? <span>for {run.principal}</span> : null}
        {run.usage.requests ? <span>{plural(run.usage.requests, "request")} to the model</span> : null}
        {run.usage.input_tokens + run.usage.output_tokens ? <span>{run.usage.input_tokens.toLocaleString()} tokens in, {run.usage.output_tokens.toLocaleString()} out</span> : null}
        {run.sessionId ? <a href={href("chat", run.sessionId)}>Conversation</a> : null}
        <code>{id}</code>
      </p>
      {over || !run.seq ? null : (
        <div class="now">
          <span role="status">{doing(run)}</span>
          <button class="small" disabled={busy} onClick={() => void act(() => send("POST", `/api/v1/runs/${id}/cancel`))}>Cancel</button>
          {left ? <button class="small" disabled={busy} title="For a run that nobody works on any more" onClick={() => void act(async () => { await send("POST", `/api/v1/runs/${id}/resume`); followAgain(id); })}>Take up again</button> : null}
        </div>
      )}
      <h2>Timeline</h2>
      <Timeline run={run} />
      <h2>Steps</h2>
      <RunCards run={run} />
      <details class="raw">
        <summary>{plural(facts.length, "event")}</summary>
        {facts.map((fact) => (
          <details key={fact.seq} class="fact">
            <summary><Badge>{String(fact.seq)}</Badge> {fact.type} <span class="quiet">{when(fact.time)}</span></summary>
            <Code label={`Event ${fact.seq}`} value={fact} />
          </details>
        ))}
      </details>
    </>
  );
}

