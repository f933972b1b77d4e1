// What several parts of the page need: answers that are kept fresh, and the time.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { explain, get, now } from "./api";

export interface Loaded<T> {
  data: T | null;
  problem: string | null;
  reload: () => void;
}

/** What a path answers; asked again every so often while the page is looked at. `null` asks nothing. */
export function useApi<T>(path: string | null, everyMs = 0): Loaded<T> {
  const [answer, setAnswer] = useState<{ path: string | null; data: T | null; problem: string | null }>({
    path, data: null, problem: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const load = async (): Promise<void> => {
      try {
        const data = await get<T>(path, stop.signal);
        if (!stop.signal.aborted) setAnswer({ path, data, problem: null });
      } catch (error) {
        if (!stop.signal.aborted) setAnswer((old) => ({ path, data: old.path === path ? old.data : null, problem: explain(error) }));
      }
    };
    void load();
    const timer = everyMs ? setInterval(() => void (document.hidden || load()), everyMs) : 0;
    const seen = (): void => void (document.hidden || load());
    if (everyMs) document.addEventListener("visibilitychange", seen);
    return () => {
      stop.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, everyMs, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const fresh = answer.path === path;
  return { data: fresh ? answer.data : null, problem: fresh ? answer.problem : null, reload };
}

/** The service's time, every second while it is wanted. */
export function useNow(wanted: boolean): number {
  const [time, setTime] = useState(now);
  useEffect(() => {
    if (!wanted) return;
    setTime(now());
    const timer = setInterval(() => setTime(now()), 1000);
    return () => clearInterval(timer);
  }, [wanted]);
  return time;
}

/** Something a person asked for: whether it is under way, and what went wrong with it. */
export function useAction(): { busy: boolean; problem: string | null; act: (work: () => Promise<unknown>) => Promise<void> } {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const there = useRef(true);
  useEffect(() => () => void (there.current = false), []);
  const act = useCallback(async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      if (there.current) setProblem(explain(error));
    }
    if (there.current) setBusy(false);
  }, []);
  return { busy, problem, act };
}
