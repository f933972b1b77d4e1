// A conversation: its runs one after another, and a place to write. Runs that somebody else begins in it appear too.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { explain, send } from "../api";
import { ended } from "../events";
import { duration, newId, plural } from "../format";
import { useAction, useApi, useNow } from "../hooks";
import { RunCards } from "../parts/run";
import { Badge, Problem, StatusBadge } from "../parts/small";
import { doing, type RunState } from "../reduce";
import { go, href } from "../router";
import { start, useRun } from "../runs";
import type { AgentRow, RunRow } from "../shapes";

const LOOK_MS = 2_000;
const LONGEST = 2_000;
const AT_ONCE = 20;

export function ChatPage({ id }: { id: string | null }) {
  const [own, setOwn] = useState<{ session: string; runs: string[] }>({ session: "", runs: [] });
  const [earlier, setEarlier] = useState(0);
  const { data: agents } = useApi<{ agents: AgentRow[] }>("/api/v1/agents");
  const limit = AT_ONCE * (earlier + 1);
  const path = id ? `/api/v1/runs?session_id=${encodeURIComponent(id)}&limit=${Math.min(200, limit)}` : null;
  const { data, problem, reload } = useApi<{ runs: RunRow[] }>(path, LOOK_MS);
  const known = useMemo(() => {
    const listed = (data?.runs ?? []).map((run) => run.id).reverse();
    // What was begun here a moment ago is not in the list yet.
    const mine = own.session === id ? own.runs.filter((run) => !listed.includes(run)) : [];
    return [...listed, ...mine];
  }, [data, own, id]);
  usePinnedToEnd(id);

  const say = async (message: string, agent: string | undefined): Promise<void> => {
    const session = id ?? newId("web");
    const run = newId("run");
    await start({ message, session_id: session, run_id: run, ...(agent ? { agent } : {}) });
    setOwn((old) => ({ session, runs: old.session === session ? [...old.runs, run] : [run] }));
    if (id === null) go("chat", session, { replace: true });
    else reload();
    scrollTo(0, document.documentElement.scrollHeight);
  };

  return (
    <div class="chat">
      <h1 class="sr-only" tabIndex={-1}>Chat</h1>
      <Problem text={problem} />
      {agents?.agents.filter((agent) => !agent.ready).map((agent) => (
        <div key={agent.name} class="failure" role="alert">
          <strong>{agents.agents.length > 1 ? `${agent.name} cannot answer` : "Nobody can answer yet"}</strong>
          <p>{agent.problem}</p>
          <p class="quiet">Tools, runs and approvals work without a language model.</p>
        </div>
      ))}
      {id === null ? <Welcome agents={agents?.agents ?? []} /> : null}
      {data && data.runs.length >= limit ? (
        <button class="earlier" onClick={() => setEarlier(earlier + 1)}>Show earlier messages</button>
      ) : null}
      {known.map((run) => <Exchange key={run} id={run} />)}
      <Composer runs={known} agents={agents?.agents ?? []} say={say} />
    </div>
  );
}

function Welcome({ agents }: { agents: AgentRow[] }) {
  const first = agents[0];
  if (!first) return null;
  return (
    <div class="welcome">
      <p class="welcome-title">What should be done?</p>
      <p>
        {first.description || <><strong>{first.name}</strong> has {plural(first.tools.length, "tool")}.</>} You see every
        call before the answer, and anything that cannot be undone asks you first.
      </p>
      <p class="chips">
        {first.tools.slice(0, 10).map((tool) => <a key={tool} class="chip" href={href("tools", tool)}>{tool}</a>)}
      </p>
    </div>
  );
}

function Exchange({ id }: { id: string }) {
  const { run, problem } = useRun(id);
  if (!run.task && !problem) return <div class="exchange loading" aria-hidden="true" />;
  return (
    <article class="exchange" aria-label={`You asked: ${run.task}`}>
      <div class="asked">{run.task}</div>
      <RunCards run={run} />
      <Problem text={problem} />
      <Foot run={run} />
    </article>
  );
}

function Foot({ run }: { run: RunState }) {
  const going = run.status === "running";
  const clock = useNow(going) / 1000;
  const took = run.startedAt === null ? null : ((run.endedAt ?? clock) - run.startedAt) * 1000;
  const tokens = run.usage.input_tokens + run.usage.output_tokens;
  return (
    <p class="foot">
      <StatusBadge status={run.status} />
      {run.endedAt !== null || going ? <span>{duration(took)}</span> : null}
      {tokens ? <span>{plural(tokens, "token")}</span> : null}
      {run.answer?.confidence != null ? <Badge>{`confidence ${Math.round(run.answer.confidence * 100)} %`}</Badge> : null}
      <a href={href("runs", run.id)}>Timeline<span class="sr-only"> of this run</span></a>
    </p>
  );
}

function Composer({ runs, agents, say }: {
  runs: string[]; agents: AgentRow[]; say: (message: string, agent: string | undefined) => Promise<void>;
}) {
  const [text, setText] = useState("");
  const [agent, setAgent] = useState<string | undefined>();
  const [problem, setProblem] = useState<string | null>(null);
  const [sending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const last = runs.at(-1);
  useEffect(() => {
    const field = box.current!;
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, 220)}px`;
  }, [text]);
  useEffect(() => {
    // On a phone this would bring up the keyboard over what one came to read.
    if (matchMedia("(hover: hover)").matches) box.current!.focus({ preventScroll: true });
  }, []);
  const submit = async (): Promise<void> => {
    const message = text.trim();
    if (!message || sending) return;
    setSending(true);
    setProblem(null);
    setText("");
    try {
      await say(message, agent);
    } catch (error) {
      setProblem(explain(error));
      // Nothing written is lost, neither this nor what was begun since.
      setText((since) => (since ? `${message}\n${since}` : message));
    }
    setSending(false);
    box.current?.focus();
  };
  const left = LONGEST - text.length;
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <Problem text={problem} />
      {last ? <Now id={last} /> : <p class="now" role="status" />}
      <div class="row">
        <label for="message" class="sr-only">Message</label>
        <textarea
          id="message" ref={box} rows={1} maxLength={LONGEST} value={text} placeholder="Say what should be done…"
          aria-describedby="composer-help" onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              void submit();
            }
          }}
        />
        <button class="primary" type="submit" disabled={!text.trim() || sending}>Send</button>
      </div>
      <p class="help quiet" id="composer-help">
        {agents.length > 1 ? (
          <label>
            Agent{" "}
            <select value={agent ?? agents[0]!.name} onChange={(event) => setAgent(event.currentTarget.value)}>
              {agents.map(({ name }) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        ) : null}
        <span class="keys">Enter sends, Shift+Enter starts a new line</span>
        {left < 200 ? <span>{left} characters left</span> : null}
      </p>
    </form>
  );
}

/** What goes on, for eyes and for screen readers, and the way to stop it. */
function Now({ id }: { id: string }) {
  const { run } = useRun(id);
  const { busy, problem, act } = useAction();
  return (
    <>
      <div class="now">
        <span role="status">{doing(run)}</span>
        {ended(run.status) || !run.task ? null : (
          <button type="button" class="small" disabled={busy} onClick={() => void act(() => send("POST", `/api/v1/runs/${id}/cancel`))}>
            Cancel
          </button>
        )}
      </div>
      <Problem text={problem} />
    </>
  );
}

/** Stays at the end while it grows, unless one has scrolled up to read. */
function usePinnedToEnd(id: string | null): void {
  useEffect(() => {
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
    const grown = new ResizeObserver(() => pinned && scrollTo(0, end()));
    grown.observe(document.querySelector(".chat")!);
    addEventListener("scroll", scrolled, { passive: true });
    return () => {
      grown.disconnect();
      removeEventListener("scroll", scrolled);
    };
  }, [id]);
}
