// Everything that waits for a person, wherever it was asked.

import { useApi, useTask } from "../hooks";
import { ApprovalCard } from "../parts/decision";
import { Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { Approvals, RunRow } from "../shapes";

export function ApprovalsPage() {
  const { data, problem, reload } = useApi<Approvals>("/api/v1/approvals?limit=200", 2_000);
  const { data: unknown } = useApi<{ runs: RunRow[] }>("/api/v1/runs?status=awaiting_resolution", 5_000);
  const nothing = data && !data.approvals.length && !unknown?.runs.length;
  return (
    <>
      <h1 tabIndex={-1}>Approvals</h1>
      <Problem text={problem} />
      {nothing ? <Empty title="Nothing waits for you">Calls that cannot be undone ask here first.</Empty> : null}
      {data?.approvals.map((approval) => (
        <div key={approval.id} class="waiting">
          <About run={approval.run_id} />
          <ApprovalCard approval={approval} inSession={false} decided={reload} />
        </div>
      ))}
      {unknown?.runs.map((run) => (
        <div key={run.id} class="waiting"><About run={run.id} /> – a call's outcome is unknown; open the run to settle it.</div>
      ))}
    </>
  );
}

function About({ run }: { run: string }) {
  return <a href={href("runs", run)}>{useTask(run) || run}</a>;
}
