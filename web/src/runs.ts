// The runs that are being looked at. However many they are, and in however many tabs, one connection brings the events of
// all of them: a browser has six to one place, and a decision needs one too.
//
// Of the tabs that show something, one holds a lock of the browser and has the connection; the others tell it what they
// want, from which fact on, and hear what it hears. A tab that is hidden or closed gives the lock back, and the next
// takes over. Where the browser has no such locks, each tab has a connection of its own.

import { useEffect, useState } from "preact/hooks";
import { explain, identity, must, request, send } from "./api";
import type { Medium, RunEvent } from "./events";
import { ended } from "./events";
import { parse } from "./json";
import { emptyRun, reduce, withoutDrafts, type RunState } from "./reduce";
import { sent } from "./sse";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8_000;
/** So many runs the service takes on one connection. */
const AT_ONCE = 50;
/** How often a tab says again what it wants, and how long that counts. */
const SAY_MS = 5_000;
const COUNTS_MS = 20_000;

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

/** What tabs tell each other. */
type Said =
  /** ``behind``: some of what this tab wants has not come. */
  | { kind: "want"; tab: string; runs: [string, number][]; behind?: boolean }
  | { kind: "who" }
  | { kind: "anew"; runs: string[] }
  | { kind: "event"; data: string }
  | { kind: "refused"; run: string; problem: string }
  | { kind: "connected"; well: boolean };

const followed = new Map<string, Followed>();
const connectionWatchers = new Set<() => void>();
const tab = crypto.randomUUID();
const others = new Map<string, { runs: [string, number][]; at: number }>();
/** Runs of which this tab has missed something, and has said so. */
const behind = new Set<string>();
let lost = false;
/** The connection: for each run the number of the last fact that it has brought. */
let stream: { stop: AbortController; passed: Map<string, number> } | null = null;
let looking = 0;
let channel: BroadcastChannel | null = null;
let named = "";
let leading = false;
/** Gives the lock back, or withdraws the wish for it. */
let resign: (() => void) | null = null;

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
export async function start(message: { message: string; session_id: string; agent?: string; run_id: string; media: Medium[] }): Promise<string> {
  const media = message.media.map(({ data, name = "", mime_type }) => ({ data, name, mime_type }));
  const begun = await send<{ run_id: string }>("POST", "/api/v1/chat", { ...message, media }, { Prefer: "respond-async" });
  // The name that was given is ours alone; the run has an id of its own.
  const id = begun.run_id;
  entryOf(id).state = emptyRun(id, message.message, message.session_id, message.media);
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

/** The runs that somebody looks at here and that have more to tell. The newest first: those are the ones that go on. */
function own(): string[] {
  if (document.hidden) return [];
  return [...followed].filter(([, entry]) => entry.watchers.size && open(entry)).map(([id]) => id).reverse();
}

/** The same with what other tabs want, each from the earliest fact that is wanted. */
function wanted(): Map<string, number> {
  const found = new Map(own().map((id) => [id, entryOf(id).state.seq]));
  for (const [name, { runs, at }] of others) {
    if (Date.now() - at > COUNTS_MS) others.delete(name);
    else for (const [id, seq] of runs) found.set(id, Math.min(found.get(id) ?? seq, seq));
  }
  return new Map([...found].slice(0, AT_ONCE));
}

/** See to it that the stream has what is wanted; once for all that changes at one moment. */
function look(): void {
  if (looking) return;
  looking = setTimeout(() => {
    looking = 0;
    const mine = own();
    meet();
    if (channel) want();
    if (!mine.length) {
      // What others want is theirs to fetch: this tab may be frozen at any moment.
      resign?.();
      if (!leading) return drop();
    }
    if (!leading && mine.length) return candidate();
    serve();
  });
}

function serve(): void {
  const runs = wanted();
  const missed = [...runs].some(([id, seq]) => !stream?.passed.has(id) || seq < stream.passed.get(id)!);
  if (stream && runs.size && !missed) return;
  drop();
  if (runs.size) void follow();
}

function drop(): void {
  stream?.stop.abort();
  stream = null;
  connected(true);
}

// --- which tab has the connection

/** Tabs of one person talk to each other; another token is another person. */
function meet(): void {
  if (!("locks" in navigator) || !("BroadcastChannel" in window) || named === identity()) return;
  resign?.();
  drop();
  channel?.close();
  others.clear();
  named = identity();
  channel = new BroadcastChannel(`journeyman-events ${named}`);
  channel.onmessage = ({ data }: MessageEvent<Said>) => heard(data);
}

function candidate(): void {
  if (!channel) {
    leading = true;
    return serve();
  }
  if (resign) return;
  const stop = new AbortController();
  resign = () => {
    resign = null;
    stop.abort();
  };
  const lead = (): Promise<void> =>
    new Promise((release) => {
      if (stop.signal.aborted) return release();
      leading = true;
      stop.signal.addEventListener("abort", () => {
        leading = false;
        drop();
        release();
      }, { once: true });
      say({ kind: "who" });
      serve();
    });
  navigator.locks.request(`journeyman-events ${named}`, { signal: stop.signal }, lead).catch(() => {});
}

const say = (said: Said): void => channel?.postMessage(said);

const want = (missed = false): void => say({ kind: "want", tab, runs: own().map((id) => [id, entryOf(id).state.seq]), behind: missed });

function heard(said: Said): void {
  switch (said.kind) {
    case "want":
      if (said.runs.length) others.set(said.tab, { runs: said.runs.map(([id, seq]) => [id, said.behind ? seq : told(said.tab, id, seq)]), at: Date.now() });
      else others.delete(said.tab);
      if (leading) serve();
      break;
    case "who":
      if (own().length) want();
      break;
    case "anew":
      for (const id of said.runs) if (followed.has(id)) entryOf(id).anew = true;
      break;
    case "event":
      hear(parse<RunEvent>(said.data));
      break;
    case "refused":
      if (followed.has(said.run)) refuse(said.run, said.problem);
      break;
    case "connected":
      if (own().length) connected(said.well);
  }
}

/** What a tab wanted before it hears as it comes; what it says of it may be on the way still. */
function told(name: string, id: string, seq: number): number {
  const before = others.get(name)?.runs.some(([run]) => run === id);
  return before ? Math.max(seq, stream?.passed.get(id) ?? seq) : seq;
}

// --- the connection

async function follow(): Promise<void> {
  const stop = new AbortController();
  let wait = FIRST_WAIT_MS;
  while (!stop.signal.aborted) {
    const runs = wanted();
    if (!runs.size) break;
    stream = { stop, passed: new Map(runs) };
    try {
      if (await take(runs, stop.signal)) continue;
    } catch {
      if (stop.signal.aborted) return;
    }
    connected(false);
    say({ kind: "connected", well: false });
    await pause(wait * (0.75 + Math.random() / 2), stop.signal);
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
  if (stream?.stop !== stop) return;
  stream = null;
  connected(true);
}

/** Whether the stream told all there was, as opposed to breaking off. */
async function take(runs: Map<string, number>, signal: AbortSignal): Promise<boolean> {
  const query = [...runs].map(([id, seq]) => `run=${encodeURIComponent(`${id}:${seq}`)}`).join("&");
  const response = await request(`/api/v1/events?${query}`, { headers: { Accept: "text/event-stream" }, signal });
  // What the service refuses it will refuse again; what is broken may come back.
  if (!response.ok && response.status < 500 && response.status !== 429) {
    await must(response).catch((error) => [...runs.keys()].forEach((id) => refusedByAll(id, explain(error))));
    return true;
  }
  await must(response);
  connected(true);
  say({ kind: "connected", well: true });
  for (const id of runs.keys()) entryOf(id).anew = true;
  say({ kind: "anew", runs: [...runs.keys()] });
  const left = new Set(runs.keys());
  for await (const { event, data } of sent(response)) {
    if (data === "[DONE]") return !left.size;
    if (event === "error") {
      const { run_id, error } = parse<{ run_id: string; error: string }>(data);
      refusedByAll(run_id, `${error}.`);
      left.delete(run_id);
    } else {
      const told = parse<RunEvent>(data);
      if (told.seq !== null) stream?.passed.set(told.run_id, told.seq);
      if (told.type === "run_finished" || told.type === "run_failed") {
        left.delete(told.run_id);
        for (const other of others.values()) other.runs = other.runs.filter(([id]) => id !== told.run_id);
      }
      if (others.size) say({ kind: "event", data });
      hear(told);
    }
  }
  return false;
}

function refusedByAll(id: string, problem: string): void {
  refuse(id, problem);
  for (const other of others.values()) other.runs = other.runs.filter(([run]) => run !== id);
  say({ kind: "refused", run: id, problem });
}

function hear(event: RunEvent): void {
  const entry = followed.get(event.run_id);
  // Another tab's, of which nothing is shown here.
  if (!entry?.watchers.size) return;
  if (event.seq !== null && event.seq > entry.state.seq + 1 && !leading) {
    if (!behind.has(event.run_id)) want(true);
    return void behind.add(event.run_id);
  }
  behind.delete(event.run_id);
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

// A page that nobody looks at gives its connection back.
document.addEventListener("visibilitychange", look);
addEventListener("pagehide", () => {
  say({ kind: "want", tab, runs: [] });
  resign?.();
});
addEventListener("pageshow", (event) => event.persisted && look());
setInterval(() => channel && own().length && want(), SAY_MS);
