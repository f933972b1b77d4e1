// Where the time of a run went: one row for each time the model was asked and each call. The time that a run waited for
// a person is cut out, else an hour of lunch would hide a second of work; a mark says how long it was.

import { ended } from "../events";
import { duration } from "../format";
import { useNow } from "../hooks";
import type { RunState } from "../reduce";

interface Row {
  key: string;
  label: string;
  kind: string;
  from: number;
  to: number;
}

export function Timeline({ run }: { run: RunState }) {
  const live = !ended(run.status) && run.status === "running";
  const clock = useNow(live) / 1000;
  if (run.startedAt === null) return null;
  const begin = run.startedAt;
  const standing = run.pauses.at(-1)?.to === null ? run.pauses.at(-1)!.from : clock;
  const end = run.endedAt ?? standing;
  const at = (time: number): number => time - begin - paused(run, time);
  const total = Math.max(0.001, at(end));
  const rows = rowsOf(run, end);
  return (
    <figure class="timeline" aria-label={`Timeline: ${rows.length} rows, ${duration(total * 1000)} of work`}>
      <ol>
        {rows.map((row) => {
          const from = at(row.from);
          const length = Math.max(0, at(row.to) - from);
          return (
            <li key={row.key}>
              <span class="name">{row.label}</span>
              <span class="track">
                <span class={`bar ${row.kind}`} style={{ left: `${pct(from, total)}%`, width: `max(3px, ${pct(length, total)}%)` }} />
                {run.pauses.map((pause) => (
                  <span key={pause.from} class="cut" style={{ left: `${pct(at(pause.from), total)}%` }} />
                ))}
              </span>
              <span class="time">{duration(length * 1000)}</span>
            </li>
          );
        })}
      </ol>
      <figcaption class="quiet">
        {duration(total * 1000)} of work
        {run.pauses.map((pause) => (
          <span key={pause.from}> · waited {duration(((pause.to ?? clock) - pause.from) * 1000)} for a person</span>
        ))}
      </figcaption>
    </figure>
  );
}

const pct = (part: number, whole: number): number => Math.max(0, Math.min(100, (part / whole) * 100));

function paused(run: RunState, until: number): number {
  return run.pauses.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to ?? until, until) - from), 0);
}

function rowsOf(run: RunState, end: number): Row[] {
  const rows: Row[] = [];
  for (const step of run.steps) {
    if (step.askedAt !== null) {
      const label = step.model ? `model, step ${step.iteration}` : `step ${step.iteration}`;
      rows.push({ key: `m${step.iteration}`, label, kind: "model", from: step.askedAt, to: step.answeredAt ?? end });
    }
    for (const call of step.calls) {
      if (call.startedAt === null) continue;
      const kind = call.status === "success" ? "good" : call.status === "running" ? "busy" : "bad";
      rows.push({ key: call.id, label: call.tool, kind, from: call.startedAt, to: call.endedAt ?? end });
    }
  }
  return rows;
}
