// A list of any length of which only what can be seen is drawn and fetched. Rows have one height, so that the place of
// each is known before it is there; the page itself scrolls. Arrows, Home and End move through it, Enter opens.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { explain, get } from "../api";

/** Rows of one request. */
const PAGE = 100;
const BEYOND = 8;
const SETTLE_MS = 60;

export interface Pages<T> {
  total: number | null;
  problem: string | null;
  row: (at: number) => T | undefined;
  show: (from: number, to: number) => void;
  reload: () => void;
}

/** Pages of a list by their place, fetched when they are shown and again every so often. */
export function usePages<T>(path: string, read: (answer: never) => { rows: T[]; total: number }, everyMs: number): Pages<T> {
  const [, redraw] = useState(0);
  const [turn, setTurn] = useState(0);
  const kept = useRef({ path, pages: new Map<number, T[]>(), total: null as number | null, problem: null as string | null });
  if (kept.current.path !== path) kept.current = { ...kept.current, path, pages: new Map(), problem: null };
  const wanted = useRef<[number, number]>([0, 0]);
  const ask = useRef<(fresh: boolean) => void>(() => {});
  useEffect(() => {
    const stop = new AbortController();
    const asked = new Set<number>();
    const load = async (page: number): Promise<void> => {
      if (asked.has(page)) return;
      asked.add(page);
      const mine = kept.current;
      try {
        const { rows, total } = read(await get<never>(`${path}&limit=${PAGE}&offset=${page * PAGE}`, stop.signal));
        mine.pages.set(page, rows);
        mine.total = total;
        mine.problem = null;
      } catch (error) {
        if (!stop.signal.aborted) mine.problem = explain(error);
      }
      asked.delete(page);
      if (!stop.signal.aborted) redraw((n) => n + 1);
    };
    ask.current = (fresh) => {
      const [from, to] = wanted.current;
      for (let page = from; page <= to; page += 1) if (fresh || !kept.current.pages.has(page)) void load(page);
    };
    ask.current(true);
    const timer = setInterval(() => document.hidden || ask.current(true), everyMs);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [path, turn]);
  const { pages, total, problem } = kept.current;
  return {
    total, problem,
    row: (at) => pages.get(Math.floor(at / PAGE))?.[at % PAGE],
    show: (from, to) => {
      wanted.current = [Math.floor(from / PAGE), Math.max(0, Math.floor((to - 1) / PAGE))];
      ask.current(false);
    },
    reload: () => setTurn((n) => n + 1),
  };
}

export function Windowed<T>({ label, pages, rem, narrowRem, children }: {
  label: string; pages: Pages<T>; rem: number; narrowRem: number;
  children: (row: T, at: number, focus: { tabIndex: number; "data-row": number }) => ComponentChildren;
}) {
  const list = useRef<HTMLOListElement>(null);
  const [active, setActive] = useState(0);
  const focusing = useRef(false);
  const height = useRowHeight(rem, narrowRem);
  const total = pages.total ?? 0;
  const [[from, to], setRange] = useState<[number, number]>([0, 20]);
  useLayoutEffect(() => {
    let timer = 0;
    const look = (): void => {
      const top = list.current!.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - BEYOND);
      const last = Math.min(total, Math.ceil((innerHeight - top) / height) + BEYOND);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
      // Who scrolls through thousands wants none of those in between.
      clearTimeout(timer);
      timer = setTimeout(() => pages.show(first, last), SETTLE_MS);
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      clearTimeout(timer);
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [total, height]);
  useEffect(() => {
    if (!focusing.current) return;
    const row = list.current!.querySelector<HTMLElement>(`[data-row="${active}"]`);
    if (!row) return;
    focusing.current = false;
    row.focus({ preventScroll: true });
  });
  const move = (event: KeyboardEvent): void => {
    const step: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -total, End: total };
    const by = step[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(total - 1, active + by));
    setActive(next);
    focusing.current = true;
    const top = scrollY + list.current!.getBoundingClientRect().top + next * height;
    const room = innerHeight / 3;
    if (top < scrollY + 80 || top + height > scrollY + innerHeight - 40) scrollTo(0, Math.max(0, top - room));
  };
  const rows = [];
  for (let at = from; at < Math.min(to, total); at += 1) {
    const row = pages.row(at);
    rows.push(
      <li key={at} style={{ top: `${at * height}px`, height: `${height}px` }} aria-setsize={total} aria-posinset={at + 1} onFocusIn={() => setActive(at)}>
        {row === undefined ? <span class="line loading-row" /> : children(row, at, { tabIndex: at === active ? 0 : -1, "data-row": at })}
      </li>,
    );
  }
  return (
    <ol ref={list} class="list windowed" aria-label={label} style={{ height: `${total * height}px` }} onKeyDown={move}>
      {rows}
    </ol>
  );
}

function useRowHeight(rem: number, narrowRem: number): number {
  const narrow = matchMedia("(max-width: 52rem)");
  const measured = (): number => (narrow.matches ? narrowRem : rem) * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const [height, setHeight] = useState(measured);
  useEffect(() => {
    const changed = (): void => setHeight(measured());
    narrow.addEventListener("change", changed);
    return () => narrow.removeEventListener("change", changed);
  }, []);
  return height;
}
