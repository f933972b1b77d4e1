// Who decided, and who was refused, what. The newest first; each row's hash covers the one before.

import { useEffect, useState } from "preact/hooks";
import { explain, get } from "../api";
import { brief, plural, when } from "../format";
import { useSettled } from "../hooks";
import { Badge, Code, Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { AuditRow } from "../shapes";

const PAGE = 200;

interface Rows {
  rows: AuditRow[];
  total: number;
}

/**
 * The latest rows. The service tells them oldest first and numbers them without holes, so the last number is known; how
 * far back those of a kind go is not: it is looked ever further back, until there are enough.
 */
async function latest(filter: string, many: number, signal: AbortSignal): Promise<Rows> {
  const whole = await get<Rows>("/api/v1/audit?limit=1", signal);
  const { total } = filter ? await get<Rows>(`/api/v1/audit?limit=1${filter}`, signal) : whole;
  const before = (whole.rows[0]?.seq ?? 1) - 1;
  for (let back = many; ; back *= 2) {
    const begin = Math.max(before, before + whole.total - back);
    let rows: AuditRow[] = [];
    for (let after = begin; ; ) {
      const page = await get<Rows>(`/api/v1/audit?after=${after}&limit=${PAGE}${filter}`, signal);
      rows = [...rows, ...page.rows].slice(-many);
      if (page.rows.length < PAGE) break;
      after = page.rows.at(-1)!.seq;
    }
    if (rows.length >= Math.min(many, total) || begin === before) return { rows, total };
  }
}

export function AuditPage() {
  const [found, setFound] = useState<Rows | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [many, setMany] = useState(PAGE);
  const [kind, setKind] = useState("");
  const [actor, setActor] = useState("");
  const [kinds, setKinds] = useState<string[]>([]);
  const who = useSettled(actor.trim());
  const filter = `${kind ? `&kind=${encodeURIComponent(kind)}` : ""}${who ? `&actor=${encodeURIComponent(who)}` : ""}`;
  useEffect(() => {
    const stop = new AbortController();
    latest(filter, many, stop.signal).then(
      (answer) => {
        setFound(answer);
        setProblem(null);
        setKinds((old) => [...new Set([...old, ...answer.rows.map((row) => row.kind)])].sort());
      },
      (error) => stop.signal.aborted || setProblem(explain(error)),
    );
    return () => stop.abort();
  }, [filter, many]);
  const rows = found?.rows;
  const broken = filter ? undefined : rows?.find((row, at) => at > 0 && row.previous !== rows[at - 1]!.hash);
  return (
    <div class="wide">
      <div class="title">
        <h1 tabIndex={-1}>Audit</h1>
        <span class="marks">
          {rows?.length && !filter ? (broken ? <Badge kind="bad">{`the chain breaks at row ${broken.seq}`}</Badge> : <Badge kind="good">{`${plural(rows.length, "row")}, each names the one before`}</Badge>) : null}
          <span class="quiet" role="status">{!found ? "" : found.total > found.rows.length ? `of ${found.total.toLocaleString()}` : filter ? plural(found.total, "row") : ""}</span>
        </span>
      </div>
      <div class="filters" role="search">
        <label>What{" "}
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">everything</option>
            {kinds.map((name) => <option key={name} value={name}>{name.replaceAll("_", " ")}</option>)}
          </select>
        </label>
        <label>Who <input value={actor} size={10} maxLength={255} onInput={(event) => setActor(event.currentTarget.value)} /></label>
      </div>
      <Problem text={problem} />
      {rows && !rows.length ? <Empty title={filter ? "Nothing like that" : "Nothing was decided or refused yet"}><p>Decisions, refusals, ratings, changes of permissions and what was purged are kept here, in a chain that shows whether anything was changed.</p></Empty> : null}
      {rows?.length ? (
        <table class="audit" role="table">
          <thead role="rowgroup"><tr role="row"><th scope="col">Time</th><th scope="col">What</th><th scope="col">Who</th><th scope="col">About</th><th scope="col">Run</th></tr></thead>
          <tbody role="rowgroup">{rows.toReversed().map((row) => <Row key={row.seq} row={row} />)}</tbody>
        </table>
      ) : null}
      {found && found.total > found.rows.length ? <div class="buttons"><button onClick={() => setMany(many * 2)}>Show more</button></div> : null}
    </div>
  );
}

const BAD = /denied|refused|expired|cancelled|purged|deleted/;
const GOOD = /approved|granted/;

function Row({ row }: { row: AuditRow }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr role="row">
        <td role="cell" class="time quiet">{when(row.time)}</td>
        <th role="rowheader" scope="row"><Badge kind={GOOD.test(row.kind) ? "good" : BAD.test(row.kind) ? "warn" : "plain"}>{row.kind.replaceAll("_", " ")}</Badge></th>
        <td role="cell">{row.actor ?? <span class="quiet">the service</span>}</td>
        <td role="cell" class="about-cell">
          <span>{about(row)}</span>{" "}
          <button class="quiet-button" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Less" : "More"}<span class="sr-only"> about row {row.seq}</span></button>
        </td>
        <td role="cell">{row.run_id ? <a href={href("runs", row.run_id)} aria-label={`Run ${row.run_id}`}>open</a> : null}</td>
      </tr>
      {open ? <tr role="row" class="raw-row"><td role="cell" colSpan={5}><Code label={`Row ${row.seq}, as it is kept`} value={row} /></td></tr> : null}
    </>
  );
}

/** What a person wants to know of it; ids and fingerprints are for programs. */
function about({ details, subject }: AuditRow): string {
  const { call_id: _call, digest: _digest, execution_id: _execution, tool_digest: _tool, tool, tool_name, ...told } = details;
  const name = tool ?? tool_name;
  const rest = brief(told).replaceAll('"', "");
  return [typeof name === "string" ? name : "", rest].filter(Boolean).join(" · ") || subject;
}
