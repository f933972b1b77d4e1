// All conversations: the latest at once, older ones on demand, and those that mention something.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { useAction, useApi, useSettled } from "../hooks";
import { Problem } from "../parts/small";
import { href } from "../router";
import type { SessionRow, Sessions } from "../shapes";

const PAGE = 20;
const LOOK_MS = 4_000;

export function Conversations({ current }: { current: string | null }) {
  const [text, setText] = useState("");
  const wanted = useSettled(text.trim());
  return (
    <section class="conversations" aria-labelledby="conversations">
      <div class="title">
        <h2 id="conversations">Conversations</h2>
        <a class="new" href={href("chat")} title="New conversation (n)">New</a>
      </div>
      <input
        type="search" class="find" aria-label="Search conversations" placeholder="Search…" maxLength={200} value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <List key={wanted} wanted={wanted} current={current} />
    </section>
  );
}

function List({ wanted, current }: { wanted: string; current: string | null }) {
  const path = `/api/v1/sessions?limit=${PAGE}${wanted ? `&q=${encodeURIComponent(wanted)}` : ""}`;
  const { data, problem, reload } = useApi<Sessions>(path, LOOK_MS);
  const [older, setOlder] = useState<Sessions | null>(null);
  const { busy, problem: failed, act } = useAction();
  useEffect(() => {
    addEventListener(CHANGED, reload);
    return () => removeEventListener(CHANGED, reload);
  }, []);
  useEffect(reload, [current]);
  const latest = data?.sessions ?? [];
  const rows = [...latest, ...(older?.sessions ?? []).filter((row) => !latest.some(({ id }) => id === row.id))];
  const next = older ? older.next_cursor : data?.next_cursor;
  const more = () => act(async () => {
    const page = await get<Sessions>(`${path}&cursor=${encodeURIComponent(next!)}`);
    setOlder((old) => ({ sessions: [...(old?.sessions ?? []), ...page.sessions], next_cursor: page.next_cursor }));
  });
  return (
    <>
      <Problem text={problem ?? failed} />
      <ul>{rows.map((row) => <li key={row.id}><Conversation row={row} current={row.id === current} /></li>)}</ul>
      {data && !rows.length ? <p class="quiet none">{wanted ? "Nothing mentions this." : "None yet."}</p> : null}
      {next ? <button class="small more" disabled={busy} onClick={() => void more()}>Show older</button> : null}
    </>
  );
}

function Conversation({ row, current }: { row: SessionRow; current: boolean }) {
  const title = row.title || row.id;
  return <a href={href("chat", row.id)} title={title} aria-current={current ? "true" : undefined}>{title}</a>;
}

const CHANGED = "conversations-changed";

/** Tells the list that one was renamed, begun or deleted. */
export const conversationsChanged = (): void => void dispatchEvent(new Event(CHANGED));
