// Gaps: what people asked for and no tool could do, those that most asked for first; and files to begin with.

import { send } from "../api";
import { plural, when } from "../format";
import { useAction, useApi } from "../hooks";
import { useMe } from "../me";
import { Badge, Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { Gap } from "../shapes";

const NEAREST = 5;

export function GapsPage({ id }: { id: string | null }) {
  return id ? <OneGap key={id} id={id} /> : <AllGaps />;
}

function AllGaps() {
  const { data, problem } = useApi<{ gaps: Gap[] }>("/api/v1/gaps", 5_000);
  return (
    <>
      <h1 tabIndex={-1}>Gaps</h1>
      <Problem text={problem} />
      {data && !data.gaps.length ? <Empty title="Nothing was missing so far">What people ask for and no tool can do is counted here.</Empty> : null}
      <ul class="list">
        {data?.gaps.map((gap) => (
          <li key={gap.key}>
            <a class="line" href={href("gaps", gap.key)}>
              <Badge kind="warn">{demand(gap)}</Badge>
              <span class="what">{gap.missing}</span>
              <span class="quiet time">{when(gap.last_at)}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function OneGap({ id }: { id: string }) {
  const path = `/api/v1/gaps/${encodeURIComponent(id)}`;
  const { data: gap, problem, reload } = useApi<Gap>(path);
  const { data: written } = useApi<{ files: { name: string; text: string }[] }>(`${path}/export?as=python`);
  const { data: gram } = useApi<{ files: { name: string; text: string }[] }>(`${path}/export`);
  const { busy, problem: refused, act } = useAction();
  const may = useMe()?.can_dismiss_gaps ?? false;
  const files = [...(gram?.files ?? []), ...(written?.files ?? [])];
  return (
    <>
      <p class="back"><a href={href("gaps")}>← All gaps</a></p>
      <h1 tabIndex={-1}>{gap ? gap.missing : "Gap"}</h1>
      <Problem text={problem ?? refused} />
      {gap ? (
        <section class="card" aria-label="Demand">
          <p>{demand(gap)}, last {when(gap.last_at)}. {gap.dismissed_at ? <Badge>dismissed</Badge> : null}</p>
          <p>For example: “{gap.report.attempted_task}”</p>
          <p class="quiet">Nearest tools: {gap.report.existing_tools_checked.slice(0, NEAREST).map((name, at) => <>{at ? ", " : ""}<a href={href("tools", name)}>{name}</a></>)}{gap.report.existing_tools_checked.length ? null : "there were none"}</p>
          {gap.run_id ? <p><a href={href("runs", gap.run_id)}>The last run</a></p> : null}
          {may && !gap.dismissed_at ? (
            <div class="buttons">
              <button disabled={busy} onClick={() => void act(async () => { await send("POST", `${path}/dismiss`); reload(); })}>Dismiss</button>
              <span class="quiet">It leaves everybody's list: nobody is going to build it.</span>
            </div>
          ) : null}
        </section>
      ) : null}
      {files.length ? <h2>To begin with</h2> : null}
      {files.length ? <p>Files that a new tool can begin with. What is missing is what it does; <a href={href("tools")}>the other tools</a> show how that looks.</p> : null}
      {files.map((file) => (
        <details class="code" key={file.name} open={file === written?.files[0]}>
          <summary>{file.name}</summary>
          <pre tabIndex={0} aria-label={file.name}>{file.text}</pre>
        </details>
      ))}
    </>
  );
}

const demand = (gap: Gap): string => `${plural(gap.times, "time")}${gap.people > 1 ? ` by ${gap.people} people` : ""}`;
