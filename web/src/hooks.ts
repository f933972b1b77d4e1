// What several parts of the page need: answers that are kept fresh, and the time.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, REACHED, explain, get, now } from "./api";

export interface Loaded<T> {
  data: T | null;
  problem: string | null;
  /** There is no such thing, or it may not be known. */
  missing: boolean;
  reload: () => void;
}

/**
 * What a path answers; asked again every so often while the page is looked at, and more seldom, or not at all, while it
 * is not. `null` asks nothing.
 */
export function useApi<T>(path: string | null, everyMs = 0, hiddenMs = 0): Loaded<T> {
  const [answer, setAnswer] = useState<{ path: string | null; data: T | null; problem: string | null; missing: boolean }>({
    path, data: null, problem: null, missing: false,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const load = async (): Promise<void> => {
      try {
        const data = await get<T>(path, stop.signal);
        if (!stop.signal.aborted) setAnswer({ path, data, problem: null, missing: false });
      } catch (error) {
        const missing = error instanceof ApiError && error.problem.status === 404;
        if (!stop.signal.aborted) {
          setAnswer((old) => ({ path, data: old.path === path && !missing ? old.data : null, problem: explain(error), missing }));
        }
      }
      asked = Date.now();
    };
    let asked = Date.now();
    void load();
    const due = (): boolean => !document.hidden || (hiddenMs > 0 && Date.now() - asked >= hiddenMs);
    const timer = everyMs ? setInterval(() => void (due() && load()), everyMs) : 0;
    const seen = (): void => void (document.hidden || load());
    if (everyMs) document.addEventListener("visibilitychange", seen);
    // What could not be had while the service was away is asked for again: a problem goes when it is over.
    addEventListener(REACHED, seen);
    return () => {
      stop.abort();
      removeEventListener(REACHED, seen);
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, everyMs, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const fresh = answer.path === path;
  return {
    data: fresh ? answer.data : null, problem: fresh ? answer.problem : null, missing: fresh && answer.missing, reload,
  };
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
      if (error instanceof TypeError) addEventListener(REACHED, () => there.current && setProblem(null), { once: true });
    }
    if (there.current) setBusy(false);
  }, []);
  return { busy, problem, act };
}

/** What somebody writes, once they pause. */
export function useSettled(text: string, milliseconds = 250): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), milliseconds);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
