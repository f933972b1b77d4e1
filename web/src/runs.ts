// The runs that are being looked at: each is followed from its first event, by one connection, for as long as a part of
// the page shows it.

import { useEffect, useState } from "preact/hooks";
import { explain, must, request } from "./api";
import type { RunEvent } from "./events";
import { ended } from "./events";
import { emptyRun, reduce, withoutDrafts, type RunState } from "./reduce";
import { sent } from "./sse";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8_000;

interface Followed {
  state: RunState;
  problem: string | null;
  watchers: Set<() => void>;
  /** Every fact as it came, for those who want to see them. */
  facts: RunEvent[];
  stop: AbortController | null;
  frame: number;
}

const followed = new Map<string, Followed>();
const lost = new Set<string>();
const connectionWatchers = new Set<() => void>();

/** Whether some stream has broken off and is being taken up again. */
export function useReconnecting(): boolean {
  const [, redraw] = useState(0);
  useEffect(() => watched(connectionWatchers, () => redraw((n) => n + 1)), []);
  return lost.size > 0;
}

export function useRun(id: string): { run: RunState; facts: RunEvent[]; problem: string | null } {
  const [, redraw] = useState(0);
  const entry = entryOf(id);
  useEffect(() => {
    const current = entryOf(id);
    const leave = watched(current.watchers, () => redraw((n) => n + 1));
    if (!document.hidden) follow(id, current);
    redraw((n) => n + 1);
    return () => {
      leave();
      if (!current.watchers.size) current.stop?.abort();
    };
  }, [id]);
  return { run: entry.state, facts: entry.facts, problem: entry.problem };
}

/** Begin a run with a message. Returns when the service has taken it; throws when it has not. */
export async function start(message: { message: string; session_id: string; agent?: string; run_id: string }): Promise<void> {
  const entry = entryOf(message.run_id);
  entry.state = emptyRun(message.run_id, message.message, message.session_id);
  const stop = new AbortController();
  entry.stop = stop;
  try {
    const response = await must(
      await request("/api/v1/chat", {
        method: "POST",
        headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
        body: JSON.stringify(message),
        signal: stop.signal,
      }),
    );
    void keepFollowing(message.run_id, entry, stop, response);
  } catch (error) {
    followed.delete(message.run_id);
    throw error;
  }
}

function entryOf(id: string): Followed {
  let entry = followed.get(id);
  if (!entry) {
    entry = { state: emptyRun(id), problem: null, watchers: new Set(), facts: [], stop: null, frame: 0 };
    followed.set(id, entry);
  }
  return entry;
}

function watched(watchers: Set<() => void>, watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function follow(id: string, entry: Followed): void {
  if (ended(entry.state.status) || entry.problem || (entry.stop && !entry.stop.signal.aborted)) return;
  entry.stop = new AbortController();
  void keepFollowing(id, entry, entry.stop);
}

async function keepFollowing(id: string, entry: Followed, stop: AbortController, first?: Response): Promise<void> {
  let wait = FIRST_WAIT_MS;
  let response = first;
  while (!stop.signal.aborted) {
    try {
      response ??= await request(`/api/v1/runs/${id}/events`, {
        headers: { Accept: "text/event-stream", "Last-Event-ID": String(entry.state.seq) },
        signal: stop.signal,
      });
      // What the service refuses it will refuse again; what is broken may come back.
      if (!response.ok && response.status < 500 && response.status !== 429) await must(response).catch((error) => {
        entry.problem = explain(error);
      });
      if (entry.problem) break;
      await must(response);
      reconnected(id);
      if (await take(entry, response)) break;
    } catch {
      if (stop.signal.aborted) break;
    }
    response = undefined;
    entry.state = withoutDrafts(entry.state);
    changed(entry);
    lost.add(id);
    connectionWatchers.forEach((tell) => tell());
    await pause(wait * (0.75 + Math.random() / 2), stop.signal);
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
  reconnected(id);
  if (entry.stop === stop) entry.stop = null;
  changed(entry);
}

/** Whether the stream came to its end, as opposed to breaking off. */
async function take(entry: Followed, response: Response): Promise<boolean> {
  for await (const { event, data } of sent(response)) {
    if (data === "[DONE]") return true;
    if (event === "error") {
      entry.problem = JSON.parse(data).error;
      continue;
    }
    const happened: RunEvent = JSON.parse(data);
    if (happened.seq !== null && happened.seq > entry.state.seq) entry.facts.push(happened);
    entry.state = reduce(entry.state, happened);
    changed(entry);
  }
  return false;
}

function reconnected(id: string): void {
  if (lost.delete(id)) connectionWatchers.forEach((tell) => tell());
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

// A browser allows few connections to one place, over all its tabs: one that nobody looks at gives its own back.
document.addEventListener("visibilitychange", () => {
  for (const [id, entry] of followed) {
    if (document.hidden) entry.stop?.abort();
    else if (entry.watchers.size) follow(id, entry);
  }
});
