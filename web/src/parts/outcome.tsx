// What became of what was asked comes first; how the run ended stands beside it. A run can complete and have done nothing.

import { ended, type RunStatus } from "../events";
import { when } from "../format";
import { STATUS } from "../reduce";
import type { Outcome, RunRow } from "../shapes";
import { Badge, StatusBadge } from "./small";

const OUTCOME: Record<Outcome, { label: string; kind: string; title: string }> = {
  achieved: { label: "Done", kind: "good", title: "What was asked was achieved" },
  partly: { label: "Partly done", kind: "warn", title: "Some of what was asked was achieved" },
  not: { label: "Not done", kind: "bad", title: "What was asked was not achieved" },
  unknown: { label: "Answered", kind: "plain", title: "Nothing was changed or looked up, so nothing shows whether it was achieved" },
};

export const OUTCOMES = Object.entries(OUTCOME) as [Outcome, (typeof OUTCOME)[Outcome]][];

/** For a run that goes on, its status is all there is to tell. */
export function OutcomeBadge({ status, outcome }: { status: RunStatus; outcome: Outcome | null | undefined }) {
  if (!ended(status)) return <StatusBadge status={status} />;
  const known = outcome && (outcome !== "unknown" || status === "completed") ? outcome : status === "completed" ? "unknown" : null;
  // Of what somebody has ended it is no news that it was not done.
  if (!known || (status === "cancelled" && known === "not")) return <StatusBadge status={status} />;
  const { label, kind, title } = OUTCOME[known];
  return <Badge kind={kind} title={title}>{label}</Badge>;
}

/** The status in plain words, with what the run waits for until when. */
export function standing(run: RunRow): string {
  if (run.cancel_wanted && !ended(run.status)) return "being cancelled";
  if (run.status === "queued" && run.position) return `queued, number ${run.position}`;
  if (run.waits_until) return `needs approval until ${when(run.waits_until)}`;
  return STATUS[run.status].toLowerCase();
}
