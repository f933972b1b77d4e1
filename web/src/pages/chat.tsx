// A conversation: its runs one after another, and a place to write. Runs that somebody else begins in it appear too.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, get, send } from "../api";
import { ended, type Medium, type RunStatus } from "../events";
import { newId, plural } from "../format";
import { conversationsChanged } from "../frame/conversations";
import { useAction, useApi } from "../hooks";
import { changes, useMe } from "../me";
import { Composer } from "../parts/composer";
import { Exchange } from "../parts/exchange";
import { bytesOf } from "../parts/files";
import { Confirm, Empty, Problem } from "../parts/small";
import { go, href } from "../router";
import { start } from "../runs";
import type { AgentRow, RunRow, Runs, SessionRow } from "../shapes";
import { STATUS } from "../reduce";

const LOOK_MS = 2_000;
/** Enough to fill a screen; the rest is there on demand, so that a long conversation opens at once. */
const AT_ONCE = 10;

export function ChatPage({ id }: { id: string | null }) {
  const [own, setOwn] = useState<{ session: string; runs: string[] }>({ session: "", runs: [] });
  const [earlier, setEarlier] = useState(0);
  const [text, setText] = useState("");
  const { data: agents } = useApi<{ agents: AgentRow[] }>("/api/v1/agents");
  const limit = Math.min(200, AT_ONCE * 3 ** earlier);
  const path = id ? `/api/v1/runs?session_id=${encodeURIComponent(id)}&limit=${limit}` : null;
  const { data, problem, reload } = useApi<Runs>(path, LOOK_MS);
  const session = useApi<SessionRow>(id ? `/api/v1/sessions/${encodeURIComponent(id)}` : null);
  const known = useMemo(() => {
    const listed = (data?.runs ?? []).map((run) => run.id).reverse();
    // What was begun here a moment ago is not in the list yet.
    const mine = own.session === id ? own.runs.filter((run) => !listed.includes(run)) : [];
    return [...listed, ...mine];
  }, [data, own, id]);
  const rows = new Map((data?.runs ?? []).map((run) => [run.id, run]));
  const me = useMe();
  const writes = id === null || !session.data || changes(me, session.data.principal);
  usePinnedToEnd(id);

  const say = async (message: string, agent: string | undefined, files: Medium[] = []): Promise<void> => {
    const session = id ?? newId("web");
    const media = await Promise.all(files.map(async (file) => ({ ...file, data: await bytesOf(file) })));
    const run = await start({ message, session_id: session, run_id: newId("run"), media, ...(agent ? { agent } : {}) });
    setOwn((old) => ({ session, runs: old.session === session ? [...old.runs, run] : [run] }));
    if (id === null) go("chat", session, { replace: true });
    else reload();
    conversationsChanged();
    scrollTo(0, document.documentElement.scrollHeight);
  };

  if (id && session.missing && !known.length) return <Missing id={id} />;
  return (
    <div class="chat">
      {id ? <Heading key={id} id={id} session={session.data} changed={session.reload} /> : <h1 class="sr-only" tabIndex={-1}>Chat</h1>}
      <Problem text={problem} />
      {agents?.agents.filter((agent) => !agent.ready).map((agent) => (
        <div key={agent.name} class="failure" role="alert">
          <strong>{agents.agents.length > 1 ? `${agent.name} cannot answer` : "No model is configured"}</strong>
          <p>{agent.problem}</p>
          <p class="quiet">Tools, tasks, runs and approvals work without a language model.</p>
        </div>
      ))}
      {id === null ? <Welcome agents={agents?.agents ?? []} begin={(words) => { setText(words); document.getElementById("message")?.focus(); }} /> : null}
      {data && data.total > limit && limit < 200 ? (
        <button class="earlier" onClick={() => setEarlier(earlier + 1)}>Show earlier messages ({(data.total - data.runs.length).toLocaleString()})</button>
      ) : null}
      {data && data.total > 200 && limit >= 200 ? <p class="earlier"><a href={href("runs")}>Still earlier messages are among the runs</a></p> : null}
      {known.map((run, at) => (
        <Exchange key={run} id={run} row={rows.get(run) ?? null} last={at === known.length - 1} again={writes && at === known.length - 1 ? (old) => say(old.task, old.agent || undefined, old.media) : null} />
      ))}
      {writes
        ? <Composer runs={known} open={openRun(rows.get(known.at(-1) ?? ""))} agents={agents?.agents ?? []} text={text} setText={setText} say={say} />
        : <p class="note reading">You read a conversation of <strong>{session.data!.principal ?? "nobody in particular"}</strong>. To write in it needs the permission <code>runs:write</code>.</p>}
    </div>
  );
}

function Missing({ id }: { id: string }) {
  return (
    <>
      <h1 tabIndex={-1}>Chat</h1>
      <Empty title="There is no such conversation">
        <p><code>{id}</code> was deleted, or never begun, or is not yours.</p>
        <p><a href={href("chat")}>Begin a new one</a></p>
      </Empty>
    </>
  );
}

/** What the conversation is called; to be renamed, or deleted. */
function Heading({ id, session, changed }: { id: string; session: SessionRow | null; changed: () => void }) {
  const [doing, setDoing] = useState<"" | "rename" | "delete">("");
  const renaming = useRef<HTMLButtonElement>(null);
  const me = useMe();
  const path = `/api/v1/sessions/${encodeURIComponent(id)}`;
  if (doing === "rename") {
    const done = (): void => {
      setDoing("");
      setTimeout(() => renaming.current?.focus());
    };
    return <Rename title={session?.title ?? ""} save={async (title) => { await send("PATCH", path, { title }); changed(); conversationsChanged(); done(); }} leave={done} />;
  }
  return (
    <div class="title chat-title">
      <h1 tabIndex={-1} title={session?.title}>{session?.title || "Chat"}</h1>
      {session && changes(me, session.principal) ? (
        <span class="doings">
          <button ref={renaming} class="quiet-button" onClick={() => setDoing("rename")}>Rename</button>
          <button class="quiet-button" onClick={() => setDoing("delete")}>Delete</button>
        </span>
      ) : null}
      {doing === "delete" ? (
        <Confirm
          title="Delete this conversation?" verb="Delete" no={() => setDoing("")}
          yes={async () => { await forget(id, path); conversationsChanged(); go("chat"); }}
        >
          <p>What was said in it and what its runs did is gone for good; a run that has not ended is cancelled first. Tasks and other effects of its calls stay.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

const openRun = (row: RunRow | undefined): boolean => row !== undefined && !ended(row.status);

const UNFINISHED = (Object.keys(STATUS) as RunStatus[]).filter((status) => !ended(status) && status !== "unknown");

/** Deletes a conversation; what is unfinished in it is cancelled first, however much that is. */
async function forget(id: string, path: string): Promise<void> {
  const open = `/api/v1/runs?session_id=${encodeURIComponent(id)}&limit=200&${UNFINISHED.map((status) => `status=${status}`).join("&")}`;
  for (let tries = 0; ; tries += 1) {
    const { runs } = await get<Runs>(open);
    for (const run of runs) if (!run.cancel_wanted) await send("POST", `/api/v1/runs/${run.id}/cancel`).catch(() => {});
    try {
      return await send("DELETE", path);
    } catch (error) {
      // Whoever works on a run needs a moment to end it.
      if (!(error instanceof ApiError && error.problem.code === "SESSION_AT_WORK") || tries >= 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

function Rename({ title, save, leave }: { title: string; save: (title: string) => Promise<void>; leave: () => void }) {
  const [text, setText] = useState(title);
  const { busy, problem, act } = useAction();
  const field = useRef<HTMLInputElement>(null);
  // At once: the button that was pressed is gone, and what is typed next would be taken for a key of the page.
  useLayoutEffect(() => {
    field.current!.focus();
    field.current!.select();
  }, []);
  return (
    <form class="title chat-title" onSubmit={(event) => { event.preventDefault(); void act(() => save(text)); }} onKeyDown={(event) => event.key === "Escape" && leave()}>
      <h1 class="sr-only" tabIndex={-1}>{title}</h1>
      <input ref={field} class="rename" aria-label="Title" value={text} maxLength={200} required onInput={(event) => setText(event.currentTarget.value)} />
      <span class="doings">
        <button class="quiet-button" disabled={busy || !text.trim()}>Save</button>
        <button type="button" class="quiet-button" onClick={leave}>Back</button>
      </span>
      <Problem text={problem} />
    </form>
  );
}

function Welcome({ agents, begin }: { agents: AgentRow[]; begin: (words: string) => void }) {
  const first = agents[0];
  if (!first) return null;
  return (
    <div class="welcome">
      <p class="welcome-title">What should be done?</p>
      <p>
        {first.description || <><strong>{first.name}</strong> has {plural(first.tools.length, "tool")}.</>} You see every
        call before the answer, and anything that cannot be undone asks you first.
      </p>
      <ul class="starters" aria-label="Ways to begin">
        {first.starters.map((words) => <li key={words}><button onClick={() => begin(words)}>{words}</button></li>)}
      </ul>
      <p class="chips">
        {first.tools.slice(0, 10).map((tool) => <a key={tool} class="chip" href={href("tools", tool)}>{tool}</a>)}
      </p>
      {first.model_name ? <p class="quiet model">Answers come from <code>{first.model_name}</code>.</p> : null}
    </div>
  );
}

/** Stays at the end while it grows, unless one has scrolled up to read. */
function usePinnedToEnd(id: string | null): void {
  useEffect(() => {
    // Where nothing has been said yet one begins at the top, however low the screen is.
    if (id === null) return;
    let pinned = true;
    let before = 0;
    const page = document.documentElement;
    const end = (): number => page.scrollHeight - innerHeight;
    // Only a person scrolls up. Being far from the end says nothing: it may just have grown.
    const scrolled = (): void => {
      if (end() - scrollY < 80) pinned = true;
      else if (scrollY < before) pinned = false;
      before = scrollY;
    };
    const grown = new ResizeObserver(() => {
      if (!pinned) return;
      // A text that is drawn part by part has no end yet: to follow it would draw all of it. One begins to read it.
      const long = page.querySelector(".exchange:last-of-type .more-text")?.closest(".exchange");
      if (!long) return scrollTo(0, end());
      pinned = false;
      if (long.getBoundingClientRect().top > 0) long.scrollIntoView();
    });
    grown.observe(document.querySelector(".chat")!);
    addEventListener("scroll", scrolled, { passive: true });
    return () => {
      grown.disconnect();
      removeEventListener("scroll", scrolled);
    };
  }, [id]);
}
