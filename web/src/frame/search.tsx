// Search across everything: pages, conversations, runs, tasks, memory, tools, approvals, gaps. One field, and the arrows.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { when } from "../format";
import { useSettled } from "../hooks";
import { PAGES } from "../pages";
import { standing } from "../parts/outcome";
import { href } from "../router";
import type { Approvals, FoundDocuments, Gap, Runs, Sessions, Tasks, ToolRow } from "../shapes";

const EACH = 5;

interface Hit {
  kind: string;
  text: string;
  more: string;
  to: string;
}

type Source = [kind: string, path: (q: string) => string, hits: (answer: never, q: string) => Hit[]];

const fits = (text: string, q: string): boolean => q.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

const SOURCES: Source[] = [
  ["Conversations", (q) => `/api/v1/sessions?limit=${EACH}&q=${q}`, (answer: Sessions) =>
    answer.sessions.map((row) => ({ kind: "Conversations", text: row.title || row.id, more: when(row.updated_at), to: href("chat", row.id) }))],
  ["Runs", (q) => `/api/v1/runs?limit=${EACH}&q=${q}`, (answer: Runs, q) => [
    ...answer.runs.map((run) => ({ kind: "Runs", text: run.request || run.id, more: `${standing(run)}, ${when(run.created_at)}`, to: href("runs", run.id) })),
    ...(answer.total > EACH ? [{ kind: "Runs", text: `All ${answer.total.toLocaleString()} runs with “${q}”`, more: "", to: href("runs", null, { q }) }] : []),
  ]],
  ["Tasks", (q) => `/api/v1/tasks?limit=${EACH}&q=${q}`, (answer: Tasks) =>
    answer.tasks.map((task) => ({ kind: "Tasks", text: task.title, more: task.status.replace("_", " "), to: href("tasks", task.id) }))],
  ["Approvals", (q) => `/api/v1/approvals?status=all&limit=${EACH}&q=${q}`, (answer: Approvals, q) =>
    answer.approvals.map((item) => ({
      kind: "Approvals", text: item.about || item.tool_name, more: item.status,
      to: href("approvals", null, { q, list: item.status === "pending" ? "" : item.status === "approved" || item.status === "denied" ? "decided" : "expired" }),
    }))],
  ["Tools", () => "/api/v1/tools", (answer: { tools: ToolRow[] }, q) =>
    answer.tools.filter((tool) => fits(`${tool.name} ${tool.description} ${tool.category}`, q)).slice(0, EACH)
      .map((tool) => ({ kind: "Tools", text: tool.name, more: tool.category, to: href("tools", tool.name) }))],
  ["Gaps", () => "/api/v1/gaps", (answer: { gaps: Gap[] }, q) =>
    answer.gaps.filter((gap) => fits(`${gap.missing} ${gap.report.attempted_task}`, q)).slice(0, EACH)
      .map((gap) => ({ kind: "Gaps", text: gap.missing, more: `${gap.times} times`, to: href("gaps", gap.key) }))],
  ["Memory", (q) => `/api/v1/memory/search?limit=${EACH}&q=${q}`, (answer: FoundDocuments, q) =>
    answer.results.map((hit) => ({ kind: "Memory", text: hit.excerpt.slice(0, 120), more: "", to: href("memory", null, { q }) }))],
];

export function SearchDialog({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [hits, setHits] = useState<Hit[]>([]);
  const [done, setDone] = useState("");
  const [at, setAt] = useState(0);
  const wanted = useSettled(text.trim(), 150);
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    return () => void setTimeout(() => document.activeElement === document.body && before instanceof HTMLElement && before.isConnected && before.focus({ preventScroll: true }));
  }, []);
  useEffect(() => {
    const pages = PAGES.filter((page) => !wanted || fits(page.title, wanted)).map((page) => ({ kind: "Pages", text: page.title, more: "", to: href(page.name) }));
    setHits(pages);
    setAt(0);
    setDone("");
    if (!wanted) return;
    const stop = new AbortController();
    const found: Hit[][] = SOURCES.map(() => []);
    // What one may not see, or what does not answer, is left out: the rest is found all the same.
    void Promise.all(SOURCES.map(async ([, path, read], number) => {
      try {
        found[number] = read(await get<never>(path(encodeURIComponent(wanted)), stop.signal), wanted);
      } catch { /* left out */ }
      if (!stop.signal.aborted) setHits([...pages, ...found.flat()]);
    })).then(() => stop.signal.aborted || setDone(wanted));
    return () => stop.abort();
  }, [wanted]);
  const open = (hit: Hit | undefined): void => {
    if (!hit) return;
    close();
    location.hash = hit.to;
  };
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      setAt((now) => (hits.length ? (now + by + hits.length) % hits.length : 0));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(hits[at]);
    } else if (event.key === "Escape") {
      // A field for searching would be emptied by it first.
      event.preventDefault();
      close();
    }
  };
  useEffect(() => dialog.current?.querySelector(`#hit-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const groups = useMemo(() => {
    const found = new Map<string, { hit: Hit; number: number }[]>();
    hits.forEach((hit, number) => found.set(hit.kind, [...(found.get(hit.kind) ?? []), { hit, number }]));
    return [...found];
  }, [hits]);
  return (
    <dialog ref={dialog} class="search" aria-label="Search everything" onCancel={(event) => { event.preventDefault(); close(); }} onClick={(event) => event.target === dialog.current && close()}>
      <input
        type="search" role="combobox" aria-label="Search everything" aria-expanded="true" aria-controls="hits" aria-autocomplete="list"
        aria-activedescendant={hits.length ? `hit-${at}` : undefined} placeholder="Search conversations, runs, tasks, tools…" maxLength={200} autofocus
        value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={move}
      />
      <div id="hits" role="listbox" aria-label="What was found">
        {groups.map(([kind, group]) => (
          <div key={kind} role="group" aria-label={kind}>
            <p class="quiet kind" aria-hidden="true">{kind}</p>
            {group.map(({ hit, number }) => (
              <div key={number} id={`hit-${number}`} role="option" aria-selected={number === at} class="hit" onClick={() => open(hit)} onMouseMove={() => setAt(number)}>
                <span class="what">{hit.text}</span><span class="quiet">{hit.more}</span>
              </div>
            ))}
          </div>
        ))}
      </div>
      <p class="quiet" role="status">{done && done === wanted && !hits.length ? "Nothing mentions this." : ""}</p>
      <p class="quiet help"><kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> opens, <kbd>Esc</kbd> closes</p>
    </dialog>
  );
}
