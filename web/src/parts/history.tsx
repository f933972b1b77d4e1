// The versions of a playbook: what each of them changed, any two of them compared, and the way back.

import { useState } from "preact/hooks";
import { plural, when } from "../format";
import { useApi } from "../hooks";
import type { PlaybookDiff, PlaybookView } from "../shapes";
import { Badge, Problem } from "./small";

interface Props {
  view: PlaybookView;
  path: string;
  busy: boolean;
  back: (to: number) => void;
}

export function History({ view, path, busy, back }: Props) {
  const [compared, setCompared] = useState<{ since: number; to: number } | null>(null);
  const since = compared?.since ?? Math.max(0, view.version - 1);
  const to = compared?.to ?? view.version;
  const known = [...view.history.map((item) => item.version), Math.min(...view.history.map((item) => item.version)) - 1];
  return (
    <>
      <h2>History</h2>
      <ul class="list" aria-label="Versions">
        {view.history.map((item) => (
          <li key={item.version}>
            <div class="line">
              <Badge>{`version ${item.version}`}</Badge>
              <span class="what">{item.reason} ({plural(item.changed, "change")}, {item.removed} removed)</span>
              <span class="quiet time">{when(item.at)}</span>
              <button onClick={() => setCompared({ since: item.version - 1, to: item.version })}>What changed</button>
              {view.can_change && item.version < view.version
                ? <button disabled={busy} onClick={() => back(item.version)}>Roll back to this</button>
                : null}
            </div>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <Choice label="Compare version" value={since} among={known} chosen={(value) => setCompared({ since: value, to })} />
        <Choice label="with version" value={to} among={known} chosen={(value) => setCompared({ since, to: value })} />
      </div>
      {compared ? <Difference path={path} since={since} to={to} /> : null}
    </>
  );
}

function Choice({ label, value, among, chosen }: { label: string; value: number; among: number[]; chosen: (value: number) => void }) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => chosen(Number(event.currentTarget.value))}>
        {among.map((version) => <option key={version} value={version}>{version || "0 (nothing learned)"}</option>)}
      </select>
    </label>
  );
}

const KINDS: Record<string, "good" | "warn" | "busy"> = { added: "good", changed: "busy", removed: "warn" };

function Difference({ path, since, to }: { path: string; since: number; to: number }) {
  const { data, problem } = useApi<PlaybookDiff>(`${path}/diff?since=${since}&to=${to}`);
  return (
    <section aria-label={`From version ${since} to version ${to}`}>
      <Problem text={problem} />
      {data && !data.bullets.length ? <p>Versions {since} and {to} say the same.</p> : null}
      {data?.bullets.map((bullet) => (
        <article key={bullet.id} class="card">
          <div class="title">
            <h3>{bullet.title}</h3>
            <Badge kind={KINDS[bullet.kind]}>{bullet.kind}</Badge>
          </div>
          <dl class="changes">
            {bullet.fields.map((change) => (
              <div key={change.field}>
                <dt>{change.field.replaceAll("_", " ")}</dt>
                <dd>
                  {bullet.kind === "added" ? null : <del>{told(change.before)}</del>}{" "}
                  {bullet.kind === "removed" ? null : <ins>{told(change.after)}</ins>}
                </dd>
              </div>
            ))}
          </dl>
        </article>
      ))}
    </section>
  );
}

/** A value as a person reads it. */
function told(value: unknown): string {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((item) => (item === true ? "good" : item === false ? "bad" : told(item))).join(", ") || "none";
  return typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
}
