// The runs that are being looked at. However many they are, one connection brings the events of all of them: a browser
// has six to one place, and a decision needs one too.

import { useEffect, useState } from "preact/hooks";
import { explain, must, request, send } from "./api";
import type { RunEvent } from "./events";
import { ended } from "./events";
import { parse } from "./json";
import { emptyRun, reduce, withoutDrafts, type RunState } from "./reduce";
import { sent } from "./sse";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8_000;
/** So many runs the service takes on one connection. */
const AT_ONCE = 50;

interface Followed {
  state: RunState;
  problem: string | null;
  watchers: Set<() => void>;
  /** Every fact as it came, for those who want to see them. */
  facts: RunEvent[];
  /** A new connection tells a text that is being written from its beginning. */
  anew: boolean;
  frame: number;
}

const followed = new Map<string, Followed>();
const connectionWatchers = new Set<() => void>();
let lost = false;
let stream: { stop: AbortController; runs: Set<string> } | null = null;
let looking = 0;

/** Whether the stream has broken off and is being taken up again. */
export function useReconnecting(): boolean {
  const [, redraw] = useState(0);
  useEffect(() => watched(connectionWatchers, () => redraw((n) => n + 1)), []);
  return lost;
}

export function useRun(id: string): { run: RunState; facts: RunEvent[]; problem: string | null } {
  const [, redraw] = useState(0);
  const entry = entryOf(id);
  useEffect(() => {
    const leave = watched(entryOf(id).watchers, () => redraw((n) => n + 1));
    look();
    redraw((n) => n + 1);
    return () => {
      leave();
      look();
    };
  }, [id]);
  return { run: entry.state, facts: entry.facts, problem: entry.problem };
}

/** Begin a run with a message. Returns its id when the service has taken it; throws when it has not. */
export async function start(message: { message: string; session_id: string; agent?: string; run_id: string }): Promise<string> {
  const begun = await send<{ run_id: string }>("POST", "/api/v1/chat", message, { Prefer: "respond-async" });
  // The name that was given is ours alone; the run has an id of its own.
  const id = begun.run_id;
  entryOf(id).state = emptyRun(id, message.message, message.session_id);
  return id;
}

/** Look again at a run that could not go on, once somebody has had it taken up again. */
export function followAgain(id: string): void {
  entryOf(id).problem = null;
  changed(entryOf(id));
  look();
}

function entryOf(id: string): Followed {
  let entry = followed.get(id);
  if (!entry) {
    entry = { state: emptyRun(id), problem: null, watchers: new Set(), facts: [], anew: false, frame: 0 };
    followed.set(id, entry);
  }
  return entry;
}

function watched(watchers: Set<() => void>, watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

const open = ({ state, problem }: Followed): boolean => !ended(state.status) && !problem;

/** The runs that somebody looks at and that have more to tell. The newest first: those are the ones that go on. */
function wanted(): string[] {
  if (document.hidden) return [];
  return [...followed].filter(([, entry]) => entry.watchers.size && open(entry)).map(([id]) => id).reverse().slice(0, AT_ONCE);
}

/** See to it that the stream has what is wanted; once for all that changes at one moment. */
function look(): void {
  if (looking) return;
  looking = setTimeout(() => {
    looking = 0;
    const runs = wanted();
    if (stream && runs.length && runs.every((id) => stream!.runs.has(id))) return;
    stream?.stop.abort();
    stream = null;
    if (runs.length) void follow();
    else connected(true);
  });
}

async function follow(): Promise<void> {
  const stop = new AbortController();
  let wait = FIRST_WAIT_MS;
  while (!stop.signal.aborted) {
    const runs = wanted();
    if (!runs.length) break;
    stream = { stop, runs: new Set(runs) };
    try {
      if (await take(runs, stop.signal)) continue;
    } catch {
      if (stop.signal.aborted) return;
    }
    connected(false);
    await pause(wait * (0.75 + Math.random() / 2), stop.signal);
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
  if (stream?.stop !== stop) return;
  stream = null;
  connected(true);
}

/** Whether the stream told all there was, as opposed to breaking off. */
async function take(runs: string[], signal: AbortSignal): Promise<boolean> {
  const query = runs.map((id) => `run=${encodeURIComponent(`${id}:${entryOf(id).state.seq}`)}`).join("&");
  const response = await request(`/api/v1/events?${query}`, { headers: { Accept: "text/event-stream" }, signal });
  // What the service refuses it will refuse again; what is broken may come back.
  if (!response.ok && response.status < 500 && response.status !== 429) {
    await must(response).catch((error) => runs.forEach((id) => refuse(id, explain(error))));
    return true;
  }
  await must(response);
  connected(true);
  for (const id of runs) entryOf(id).anew = true;
  for await (const { event, data } of sent(response)) {
    if (data === "[DONE]") return !runs.some((id) => open(entryOf(id)));
    if (event === "error") {
      const { run_id, error } = parse<{ run_id: string; error: string }>(data);
      refuse(run_id, `${error}.`);
    } else {
      hear(parse<RunEvent>(data));
    }
  }
  return false;
}

function hear(event: RunEvent): void {
  const entry = entryOf(event.run_id);
  if (event.seq !== null && event.seq > entry.state.seq) entry.facts.push(event);
  if (entry.anew && event.type === "text_delta") {
    entry.state = withoutDrafts(entry.state);
    entry.anew = false;
  }
  entry.state = reduce(entry.state, event);
  changed(entry);
  // Makes room for one that did not fit.
  if (!open(entry)) look();
}

function refuse(id: string, problem: string): void {
  const entry = entryOf(id);
  entry.problem = problem;
  changed(entry);
}

function connected(well: boolean): void {
  if (lost === !well) return;
  lost = !well;
  connectionWatchers.forEach((tell) => tell());
}

/** At most one redraw a frame, however fast events come. A hidden page has no frames. */
function changed(entry: Followed): void {
  if (entry.frame) return;
  entry.frame = setTimeout(() => {
    entry.frame = 0;
    entry.watchers.forEach((tell) => tell());
  }, 16);
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      clearTimeout(timer);
      removeEventListener("online", go);
      resolve();
    };
    const timer = setTimeout(go, milliseconds);
    addEventListener("online", go);
    signal.addEventListener("abort", go, { once: true });
  });
}

// Connections are shared by all tabs of a browser: a page that nobody looks at gives its own back.
document.addEventListener("visibilitychange", look);
