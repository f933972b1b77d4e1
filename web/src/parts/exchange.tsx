// One message and what came of it, with what one can do with the answer.

import { useState } from "preact/hooks";
import { send } from "../api";
import { ended } from "../events";
import { duration } from "../format";
import { useAction, useNow } from "../hooks";
import { changes, useMe } from "../me";
import type { RunState } from "../reduce";
import { href } from "../router";
import { useRun } from "../runs";
import type { RunRow } from "../shapes";
import { MediaList } from "./files";
import { OutcomeBadge, standing } from "./outcome";
import { RatingButtons } from "./rating";
import { RunCards } from "./run";
import { Badge, Problem } from "./small";

/** ``row``: as the list has it; null for one that was begun a moment ago. The last one is cancelled where one writes. */
export function Exchange({ id, row, last, again }: {
  id: string; row: RunRow | null; last: boolean; again: ((run: RunState) => Promise<void>) | null;
}) {
  const { run, problem } = useRun(id);
  // One that waits for its turn has no events yet that would tell.
  const task = run.task || row?.request || "";
  if (!task && !problem) return <div class="exchange loading" aria-hidden="true" />;
  return (
    <article class="exchange" aria-label={`You asked: ${task}`}>
      <div class="asked">{task}<MediaList of={run.media} /></div>
      <RunCards run={run} />
      {run.missing.length ? <p class="note">No tool can do this yet: {run.missing.join("; ")}. <a href={href("gaps")}>It was noted.</a></p> : null}
      <Problem text={problem} />
      <Foot run={run} row={row} last={last} again={again} />
    </article>
  );
}

function Foot({ run, row, last, again }: {
  run: RunState; row: RunRow | null; last: boolean; again: ((run: RunState) => Promise<void>) | null;
}) {
  const me = useMe();
  const own = changes(me, run.principal ?? row?.principal);
  const going = run.status === "running";
  const clock = useNow(going) / 1000;
  const { busy, problem, act } = useAction();
  const took = run.startedAt === null ? null : ((run.endedAt ?? clock) - run.startedAt) * 1000;
  const { input_tokens: read, output_tokens: written } = run.usage;
  return (
    <>
      <div class="foot">
        <OutcomeBadge status={run.status} outcome={row?.outcome} />
        {row && !ended(run.status) && row.waits_until ? <span>{standing(row)}</span> : null}
        {run.endedAt !== null || going ? <span>{duration(took)}</span> : null}
        {read || written ? <span title="Tokens that the model has read and written">{read.toLocaleString()} tokens in, {written.toLocaleString()} out</span> : null}
        {run.answer?.confidence != null ? <Badge>{`confidence ${Math.round(run.answer.confidence * 100)} %`}</Badge> : null}
        <a href={href("runs", run.id)}>Timeline<span class="sr-only"> of this run</span></a>
        <span class="doings">
          {last || ended(run.status) || !own ? null : <button class="small" disabled={busy || row?.cancel_wanted} onClick={() => void act(() => send("POST", `/api/v1/runs/${run.id}/cancel`))}>Cancel</button>}
          {ended(run.status) && own ? <RatingButtons runId={run.id} /> : null}
          {run.answer?.text ? <Copy text={run.answer.text} /> : null}
          {again && ended(run.status) ? <button class="quiet-button" disabled={busy} onClick={() => void act(() => again(run))}>Retry</button> : null}
        </span>
      </div>
      <Problem text={problem} />
    </>
  );
}

function Copy({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("The browser did not allow it");
    }
    setTimeout(() => setSaid(""), 3_000);
  };
  return (
    <>
      <span role="status">{said}</span>
      <button class="quiet-button" onClick={() => void copy()}>Copy<span class="sr-only"> the answer</span></button>
    </>
  );
}
