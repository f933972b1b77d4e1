// Experiments: how live traffic is divided and fares, and what finished comparisons found.

import { send } from "../api";
import { percent, plural, when } from "../format";
import { useAction, useApi } from "../hooks";
import { useMe } from "../me";
import { Intervals, wilson } from "../parts/plots";
import { Badge, Empty, Problem } from "../parts/small";
import { href } from "../router";
import type { Report, ReportRow, Split } from "../shapes";

export function ExperimentsPage({ id }: { id: string | null }) {
  return id ? <OneReport key={id} id={id} /> : <AllExperiments />;
}

function AllExperiments() {
  const { data, problem, reload } = useApi<{ live: Split[]; experiments: ReportRow[] }>("/api/v1/experiments", 3_000);
  const nothing = data && !data.live.length && !data.experiments.length;
  return (
    <>
      <h1 tabIndex={-1}>Experiments</h1>
      <Problem text={problem} />
      {nothing ? <Empty title="No experiments yet">Give some requests other tools, another model or no advice, and see which fares better: live traffic that is divided in the configuration, and comparisons that are kept in the store, are shown here with how sure they are.</Empty> : null}
      {data?.live.map((split) => <Live key={split.name} split={split} changed={reload} />)}
      {data?.experiments.length ? (
        <>
          <h2>Finished</h2>
          <ul class="list">
            {data.experiments.map((report) => (
              <li key={report.id}>
                <a class="line" href={href("experiments", report.id)}>
                  {report.winner ? <Badge kind="good">{`${report.winner} wins`}</Badge> : <Badge>no winner</Badge>}
                  <span class="what">{report.name}</span>
                  <span class="quiet time">{when(report.created_at)}</span>
                </a>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </>
  );
}

function Live({ split, changed }: { split: Split; changed: () => void }) {
  const { busy, problem, act } = useAction();
  const may = useMe()?.can_change_experiments ?? false;
  const rows = split.arms.map((arm) => {
    const total = arm.success_count + arm.failure_count;
    const [low, high] = wilson(arm.success_count, total);
    return { name: `${arm.name} (${plural(total, "call")})`, mean: total ? arm.success_count / total : 0.5, low, high };
  });
  const change = (stopped: boolean) =>
    act(async () => {
      await send("PATCH", `/api/v1/experiments/${encodeURIComponent(split.name)}`, { stopped });
      changed();
    });
  return (
    <section class="card" aria-label={`Live experiment ${split.name}`}>
      <div class="title">
        <h2>{split.name}</h2>
        {split.stopped ? <Badge kind="warn">stopped</Badge> : <Badge kind="busy">live</Badge>}
      </div>
      <div class="shares" role="img" aria-label={split.arms.map((arm) => `${arm.name} ${arm.share} percent`).join(", ")}>
        {split.arms.filter((arm) => arm.share > 0).map((arm, at) => (
          <span key={arm.name} class={`share s${at % 4}`} style={{ flexGrow: arm.share }}>{arm.name} {arm.share} %</span>
        ))}
      </div>
      <Intervals rows={rows} title="Calls that succeeded, with 95 % intervals" show={percent} />
      <div class="buttons">
        {!may ? null : split.stopped
          ? <button disabled={busy} onClick={() => void change(false)}>Start again</button>
          : <button class="danger" disabled={busy} onClick={() => void change(true)}>Stop</button>}
        <span class="quiet">{split.stopped ? `Everything new goes to ${split.arms[0]?.name}.` : "Stopping sends everything new to the first arm, at once."}</span>
      </div>
      <Problem text={problem} />
    </section>
  );
}

function OneReport({ id }: { id: string }) {
  const { data, problem } = useApi<{ report: Report }>(`/api/v1/experiments/${encodeURIComponent(id)}`);
  const report = data?.report;
  const metrics = Object.keys(report?.arms[0]?.figures ?? {});
  return (
    <>
      <p class="back"><a href={href("experiments")}>← All experiments</a></p>
      <h1 tabIndex={-1}>{report?.name ?? "Experiment"}</h1>
      <Problem text={problem} />
      {report ? (
        <>
          <p class="verdict">{report.winner ? `${report.winner} is better, beyond doubt.` : "No winner: the evidence does not decide."}</p>
          <p class="quiet">
            Compared {report.paired ? "paired by input" : "by sticky assignment"}; look {report.look} of {report.looks}; a
            difference counts below p = {report.alpha.toFixed(4)}.
          </p>
          <div class="plots">
            {metrics.map((metric) => (
              <Intervals
                key={metric} title={metric} show={figure}
                rows={report.arms.map((arm) => ({ name: arm.arm, ...arm.figures[metric]!, best: arm.arm === report.winner }))}
              />
            ))}
          </div>
          <h2>Comparisons on the score</h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Comparisons">
            <table>
              <thead><tr><th scope="col">Arms</th><th scope="col">Difference</th><th scope="col">95 % interval</th><th scope="col">p</th><th scope="col">p corrected</th></tr></thead>
              <tbody>
                {report.comparisons.map((item) => (
                  <tr key={`${item.a} ${item.b}`}>
                    <th scope="row">{item.b} against {item.a}</th>
                    <td>{signed(item.difference)}</td>
                    <td>{item.low === null || item.high === null ? "–" : `${signed(item.low)} … ${signed(item.high)}`}</td>
                    <td>{item.p.toFixed(4)}</td>
                    <td>{item.p_corrected.toFixed(4)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="quiet">{report.arms.map((arm) => `${arm.arm}: ${plural(arm.observations, "run")} of ${plural(arm.units, "unit")}, ${arm.failures} failed`).join(" · ")}</p>
        </>
      ) : null}
    </>
  );
}

const figure = (value: number): string => Number(value.toPrecision(3)).toLocaleString();
const signed = (value: number): string => `${value > 0 ? "+" : ""}${value.toFixed(3)}`;
