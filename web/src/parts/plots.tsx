// Plots as plain SVG, each with the same told in words.

/** Calls over time as bars; the failed part of each is marked. */
export function Sparkline({ history, label }: { history: [number, number][]; label: string }) {
  const most = Math.max(1, ...history.map(([all]) => all));
  const width = 5;
  return (
    <svg class="spark" viewBox={`0 0 ${history.length * width} 24`} role="img" aria-label={label} preserveAspectRatio="none">
      {history.map(([all, failed], at) => {
        const height = all ? Math.max(2, (all / most) * 24) : 1;
        const bad = all ? (failed / all) * height : 0;
        return (
          <g key={at}>
            <rect class={all ? "bar" : "bar none"} x={at * width} width={width - 1.5} y={24 - height} height={height} />
            {bad ? <rect class="bar bad" x={at * width} width={width - 1.5} y={24 - bad} height={bad} /> : null}
          </g>
        );
      })}
    </svg>
  );
}

export interface Interval {
  name: string;
  mean: number;
  low: number | null;
  high: number | null;
  best?: boolean;
  /** There is nothing yet to make a figure of. */
  none?: boolean;
}

/** One dot with its interval a row, on a common scale. */
export function Intervals({ rows, title, show }: { rows: Interval[]; title: string; show: (value: number) => string }) {
  const values = rows.filter((row) => !row.none).flatMap((row) => [row.mean, row.low ?? row.mean, row.high ?? row.mean]);
  const least = values.length ? Math.min(...values) : 0;
  const most = values.length ? Math.max(...values) : 1;
  const room = (most - least || Math.abs(most) || 1) * 0.08;
  const from = least - room;
  const to = most + room;
  const x = (value: number): number => ((value - from) / (to - from)) * 100;
  const told = (row: Interval): string =>
    `${show(row.mean)}${row.low === null || row.high === null ? "" : ` (${show(row.low)} to ${show(row.high)})`}`;
  return (
    <figure class="intervals">
      <figcaption>{title}</figcaption>
      <dl>
        {rows.map((row) => (
          <div key={row.name} class={row.best ? "best" : ""}>
            <dt>{row.name}</dt>
            {row.none ? <dd>no runs yet</dd> : <dd>
              <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <line class="axis" x1="0" x2="100" y1="5" y2="5" />
                {row.low !== null && row.high !== null
                  ? <rect class="range" x={x(row.low)} width={Math.max(0.6, x(row.high) - x(row.low))} y="3" height="4" />
                  : null}
                <rect class="mean" x={x(row.mean) - 0.5} width="1" y="1" height="8" />
              </svg>
              <span>{told(row)}</span>
            </dd>}
          </div>
        ))}
      </dl>
    </figure>
  );
}

/** Wilson's interval for a rate at 95 %: honest also for few calls. */
export function wilson(successes: number, total: number): [number, number] {
  if (!total) return [0, 1];
  const z = 1.96;
  const rate = successes / total;
  const middle = rate + (z * z) / (2 * total);
  const spread = z * Math.sqrt((rate * (1 - rate)) / total + (z * z) / (4 * total * total));
  const scale = 1 + (z * z) / total;
  return [Math.max(0, (middle - spread) / scale), Math.min(1, (middle + spread) / scale)];
}
