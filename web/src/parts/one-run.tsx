// One run: what became of it, what it waits for, its timeline, its steps, and every event behind them.

import { send } from "../api";
import { ended } from "../events";
import { countdown, duration, money, plural, when } from "../format";
import { useAction, useApi, useNow } from "../hooks";
import { changes, useMe } from "../me";
import { doing } from "../reduce";
import { href } from "../router";
import { followAgain, useRun } from "../runs";
import type { RunDetails, RunRow, Wait } from "../shapes";
import { OutcomeBadge, standing } from "./outcome";
import { RatingButtons } from "./rating";
import { RunCards } from "./run";
import { Badge, Code, Empty, Problem } from "./small";
import { Past } from "./past";
import { Timeline } from "./timeline";

const LOOK_MS = 3_000;

export function OneRun({ id }: { id: string }) {
  const { run, facts, problem } = useRun(id);
  const me = useMe();
  const over = ended(run.status);
  // Asked once more when it has ended: then what became of it is known.
  const { data, problem: unknown, reload } = useApi<RunDetails>(`/api/v1/runs/${encodeURIComponent(id)}${over ? "?" : ""}`, over ? 0 : LOOK_MS);
  const { busy, problem: failed, act } = useAction();
  const row = data?.run;
  const task = data?.task || run.task;
  if ((problem ?? unknown) && !run.seq && !row) {
    return (
      <>
        <p class="back"><a href={href("runs")}>← All runs</a></p>
        <h1 tabIndex={-1}>Run</h1>
        <Empty title="This run cannot be shown"><p>{problem ?? unknown}</p><p>It may have been deleted, or is not yours: ended runs are kept for some days only.</p></Empty>
      </>
    );
  }
  const status = run.seq ? run.status : (row?.status ?? run.status);
  const open = row !== undefined && !ended(status) && changes(me, row.principal);
  const left = status === "running" || (status === "queued" && !data?.waits.length) || status === "stuck";
  return (
    <>
      <p class="back"><a href={href("runs")}>← All runs</a></p>
      <div class="title">
        <h1 tabIndex={-1} class="request-title">{task || "Run"}</h1>
        <span class="marks"><OutcomeBadge status={status} outcome={row?.outcome} />{row && ended(status) ? <span class="quiet">{standing({ ...row, status })}</span> : null}</span>
        {over && row && changes(me, row.principal) ? <RatingButtons runId={id} look /> : null}
      </div>
      <Problem text={problem ?? failed} />
      {row ? <Figures row={row} sessionId={run.sessionId} requests={run.usage.requests} /> : null}
      {ended(status) || !row ? null : (
        <div class="now">
          <span role="status">{doing(run, me?.can_decide ?? false)}</span>
          {open ? <button class="small danger" disabled={busy || row.cancel_wanted} onClick={() => void act(async () => { await send("POST", `/api/v1/runs/${id}/cancel`); reload(); })}>{row.cancel_wanted ? "Being cancelled…" : "Cancel"}</button> : null}
          {open && left ? <button class="small" disabled={busy} title="For a run that nobody works on any more" onClick={() => void act(async () => { await send("POST", `/api/v1/runs/${id}/resume`); followAgain(id); reload(); })}>Take up again</button> : null}
        </div>
      )}
      {data && !over ? <Waits waits={data.waits} trouble={row?.trouble ?? null} /> : null}
      {run.startedAt === null ? null : <h2>Timeline</h2>}
      <Timeline run={run} />
      <Past id={id} steps={run.steps.filter((step) => step.answeredAt !== null).length} forks={row !== undefined && changes(me, row.principal)} />
      <h2>Steps</h2>
      <RunCards run={run} />
      {facts.length ? (
        <details class="raw">
          <summary>{plural(facts.length, "event")}</summary>
          {facts.map((fact) => (
            <details key={fact.seq} class="fact">
              <summary><Badge>{String(fact.seq)}</Badge> {fact.type} <span class="quiet">{when(fact.time)}</span></summary>
              <Code label={`Event ${fact.seq}`} value={fact} />
            </details>
          ))}
        </details>
      ) : null}
    </>
  );
}

function Figures({ row, sessionId, requests }: { row: RunRow; sessionId: string | null; requests: number }) {
  return (
    <p class="quiet facts">
      <span>{when(row.created_at)}</span>
      <span>agent {row.agent}</span>
      {row.principal ? <span>for {row.principal}</span> : null}
      {ended(row.status) ? <span>took {duration(Date.parse(row.updated_at) - Date.parse(row.created_at))}</span> : null}
      {row.cost === null ? null : <span title="By the providers' list prices">{money(row.cost)}</span>}
      {requests ? <span>{plural(requests, "request")} to {row.model ?? "the model"}</span> : null}
      {row.input_tokens || row.output_tokens ? <span>{(row.input_tokens ?? 0).toLocaleString()} tokens in, {(row.output_tokens ?? 0).toLocaleString()} out</span> : null}
      {sessionId ? <a href={href("chat", sessionId)}>Conversation</a> : null}
      <code>{row.id}</code>
    </p>
  );
}

/** What it waits for, whom, and until when. */
export function Waits({ waits, trouble }: { waits: Wait[]; trouble: string | null }) {
  const clock = useNow(waits.some((wait) => wait.until !== null));
  if (!waits.length && !trouble) return null;
  return (
    <ul class="note waits" aria-label="What it waits for">
      {waits.map((wait, at) => (
        <li key={at}>
          Waits for {wait.whom.startsWith("run ") ? <>{"an earlier run, "}<a href={href("runs", wait.whom.slice(4))}>{wait.whom.slice(4)}</a></> : <strong>{wait.whom}</strong>}: {wait.text}
          {wait.until === null ? null : <> – until {when(wait.until)}, {countdown(Date.parse(wait.until) - clock)} left</>}
        </li>
      ))}
      {trouble && !waits.length ? <li>{trouble}</li> : null}
    </ul>
  );
}
