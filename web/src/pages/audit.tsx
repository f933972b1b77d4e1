// Who decided, and who was refused, what. The newest first; each row's hash covers the one before.

import { useEffect, useState } from "preact/hooks";
import { explain, get } from "../api";
import { brief, plural, when } from "../format";
import { Badge, Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { AuditRow } from "../shapes";

const PAGE = 200;
const MOST = 2_000;

export function AuditPage() {
  const [rows, setRows] = useState<AuditRow[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [shown, setShown] = useState(50);
  useEffect(() => {
    const stop = new AbortController();
    // The service tells them oldest first, so the newest are reached by going through them.
    const read = async (): Promise<void> => {
      let found: AuditRow[] = [];
      for (let after = 0; ; ) {
        const { rows: page } = await get<{ rows: AuditRow[] }>(`/api/v1/audit?after=${after}&limit=${PAGE}`, stop.signal);
        found = [...found, ...page].slice(-MOST);
        if (page.length < PAGE) break;
        after = page.at(-1)!.seq;
      }
      setRows(found);
    };
    read().catch((error) => stop.signal.aborted || setProblem(explain(error)));
    return () => stop.abort();
  }, []);
  const broken = rows?.find((row, at) => at > 0 && row.previous !== rows[at - 1]!.hash);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Audit</h1>
        {rows?.length ? (broken ? <Badge kind="bad">{`the chain breaks at row ${broken.seq}`}</Badge> : <Badge kind="good">{`${plural(rows.length, "row")}, each names the one before`}</Badge>) : null}
      </div>
      <Problem text={problem} />
      {rows && !rows.length ? <Empty title="Nothing was decided or refused yet" /> : null}
      {rows?.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Audit rows">
          <table>
            <thead><tr><th scope="col">#</th><th scope="col">Time</th><th scope="col">What</th><th scope="col">Who</th><th scope="col">About</th><th scope="col">Run</th><th scope="col">Hash</th></tr></thead>
            <tbody>
              {rows.toReversed().slice(0, shown).map((row) => (
                <tr key={row.seq}>
                  <td>{row.seq}</td>
                  <td class="time">{when(row.time)}</td>
                  <th scope="row">{row.kind.replaceAll("_", " ")}</th>
                  <td>{row.actor ?? "–"}</td>
                  <td class="details"><code title={row.subject}>{about(row)}</code></td>
                  <td>{row.run_id ? <a href={href("runs", row.run_id)} aria-label={`Run ${row.run_id}`}>open</a> : "–"}</td>
                  <td><code title={row.hash}>{row.hash.slice(0, 10)}</code></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {rows && rows.length > shown ? <button onClick={() => setShown(shown + 100)}>Show more</button> : null}
    </>
  );
}

/** What a person wants to know of it; ids and fingerprints are for programs. */
function about({ details, subject }: AuditRow): string {
  const { call_id: _call, digest: _digest, ...told } = details;
  return brief(told) || subject;
}
