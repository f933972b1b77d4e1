// The frame around the pages: menu, conversations, theme, keys, and the question for a token.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { onTokenNeeded, setToken } from "./api";
import { useApi } from "./hooks";
import { PAGES } from "./pages";
import { useTask } from "./pages/runs";
import { go, href, useRoute } from "./router";
import { useReconnecting } from "./runs";
import type { Approvals, RunRow } from "./shapes";

function App() {
  const route = useRoute();
  const entry = PAGES.find((page) => page.name === route.page) ?? PAGES[0]!;
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { data } = useApi<Approvals>("/api/v1/approvals?limit=100", 3_000);
  const waiting = data?.approvals.length ?? 0;
  const away = useReconnecting();
  const place = `${entry.name}/${entry.name === "chat" ? "" : route.id}`;
  const first = useRef(true);
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ""}${entry.title} – Journeyman`;
  }, [entry, waiting]);
  useEffect(() => {
    setMenu(false);
    if (first.current) return void (first.current = false);
    if (entry.name !== "chat") scrollTo(0, 0);
    // A screen reader begins to read where the focus is.
    if (entry.name !== "chat") main.current!.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [place]);
  useKeys();
  return (
    <div class="frame" onKeyDown={(event) => event.key === "Escape" && setMenu(false)}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current!.focus(); }}>Skip to content</a>
      <header class="top">
        <a class="brand" href={href("chat")}><Logo /> Journeyman</a>
        <button class="menu-button" aria-expanded={menu} aria-controls="menu" onClick={() => setMenu(!menu)}>
          Menu{waiting ? <span class="count">{waiting}</span> : null}
        </button>
      </header>
      <aside id="menu" class={menu ? "menu open" : "menu"}>
        <nav aria-label="Pages">
          {PAGES.map((page) => (
            <a key={page.name} href={href(page.name)} aria-current={page === entry ? "page" : undefined}>
              <svg viewBox="0 0 24 24" aria-hidden="true"><path d={page.icon} /></svg>
              {page.title}
              {page.name === "approvals" && waiting ? <span class="count" aria-label={`${waiting} waiting`}>{waiting}</span> : null}
            </a>
          ))}
        </nav>
        <Conversations current={entry.name === "chat" ? route.id : null} />
        <Settings />
      </aside>
      <main id="main" ref={main} tabIndex={-1}>
        {away ? <p class="away" role="status">The connection broke off. Coming back…</p> : null}
        <entry.page id={route.id} />
      </main>
      <TokenDialog />
    </div>
  );
}

function Logo() {
  return <svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M19 7v12a6 6 0 0 1-11 3" /><circle cx="24" cy="9" r="2.5" /></svg>;
}

interface Session {
  id: string;
}

function Conversations({ current }: { current: string | null }) {
  const { data, reload } = useApi<{ sessions: Session[] }>("/api/v1/sessions?limit=15", 4_000);
  useEffect(reload, [current]);
  return (
    <section class="conversations" aria-labelledby="conversations">
      <div class="title">
        <h2 id="conversations">Conversations</h2>
        <a class="new" href={href("chat")} title="New conversation (n)">New</a>
      </div>
      <ul>
        {data?.sessions.map((session) => (
          <li key={session.id}><Conversation id={session.id} current={session.id === current} /></li>
        ))}
      </ul>
    </section>
  );
}

function Conversation({ id, current }: { id: string; current: boolean }) {
  const { data } = useApi<{ runs: RunRow[] }>(`/api/v1/runs?session_id=${encodeURIComponent(id)}&limit=200`);
  const first = data?.runs.at(-1);
  return (
    <a href={href("chat", id)} aria-current={current ? "true" : undefined}>
      {first ? <Title run={first.id} /> : id}
    </a>
  );
}

function Title({ run }: { run: string }) {
  return <>{useTask(run) || "…"}</>;
}

const THEMES = ["auto", "light", "dark"] as const;

function Settings() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  const [keys, setKeys] = useState(localStorage.getItem("keys") !== "off");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  useEffect(() => localStorage.setItem("keys", keys ? "on" : "off"), [keys]);
  return (
    <div class="settings">
      <label>Theme{" "}
        <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
          {THEMES.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      <details>
        <summary>Keys</summary>
        <label class="check"><input type="checkbox" checked={keys} onChange={(event) => setKeys(event.currentTarget.checked)} /> Single keys work</label>
        <dl class="keys-list">
          <div><dt><kbd>/</kbd></dt><dd>write</dd></div>
          <div><dt><kbd>n</kbd></dt><dd>new conversation</dd></div>
          <div><dt><kbd>d</kbd></dt><dd>next decision</dd></div>
        </dl>
      </details>
    </div>
  );
}

/** Single keys, unless one is writing, or has turned them off. */
function useKeys(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
      if (localStorage.getItem("keys") === "off") return;
      if (event.key === "/") {
        const box = document.getElementById("message");
        if (box) box.focus();
        else go("chat");
      } else if (event.key === "n") {
        go("chat");
      } else if (event.key === "d") {
        nextDecision();
      } else {
        return;
      }
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function nextDecision(): void {
  const all = [...document.querySelectorAll<HTMLElement>("[data-decision]")];
  if (!all.length) return go("approvals");
  const at = all.findIndex((card) => card.contains(document.activeElement));
  const next = all[(at + 1) % all.length]!;
  next.focus();
  next.scrollIntoView({ block: "center" });
}

function TokenDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => onTokenNeeded(() => dialog.current!.open || dialog.current!.showModal()), []);
  return (
    <dialog ref={dialog} aria-labelledby="token-title" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const field = event.currentTarget.elements.namedItem("token") as HTMLInputElement;
          setToken(field.value.trim());
          field.value = "";
          dialog.current!.close();
        }}
      >
        <h2 id="token-title">Who are you?</h2>
        <p>This service needs a token. It is kept in this tab only.</p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" name="token" type="password" required autocomplete="off" />
        </div>
        <div class="buttons"><button class="primary">Go on</button></div>
      </form>
    </dialog>
  );
}

render(<App />, document.getElementById("app")!);
