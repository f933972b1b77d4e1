// The frame around the pages: the menu, the conversations, what one has chosen, and the question for a token.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { escapeDirections } from "./bidi";
import { Conversations } from "./frame/conversations";
import { useKeys } from "./frame/keys";
import { SearchDialog } from "./frame/search";
import { Settings } from "./frame/settings";
import { TokenDialog } from "./frame/token";
import { useWaiting } from "./frame/waiting";
import { useApi } from "./hooks";
import { MeContext, type Me } from "./me";
import { PAGES, type PageEntry } from "./pages";
import type { ConfigurationState } from "./pages/service";
import { Empty } from "./parts/small";
import { href, useRoute } from "./router";
import { useReconnecting } from "./runs";

function App() {
  const route = useRoute();
  const entry = PAGES.find((page) => page.name === route.page) ?? NOWHERE;
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { data: me } = useApi<Me>("/api/v1/me");
  const waiting = useWaiting();
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
  useEffect(() => setMenu(false), [route.id]);
  const [searching, setSearching] = useState(false);
  useKeys(() => setSearching(true));
  const shown = PAGES.filter((page) => page.name !== "audit" || me?.can_read_audit !== false);
  return (
    <MeContext.Provider value={me}>
      <div class="frame" onKeyDown={(event) => event.key === "Escape" && setMenu(false)}>
        <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current!.focus(); }}>Skip to content</a>
        <header class="top">
          <a class="brand" href={href("chat")}><Logo /> Journeyman</a>
          <button class="menu-button" aria-expanded={menu} aria-controls="menu" onClick={() => setMenu(!menu)}>
            Menu{waiting ? <span class="count">{waiting}</span> : null}
          </button>
        </header>
        <aside id="menu" class={menu ? "menu open" : "menu"}>
          <button class="search-button" onClick={() => setSearching(true)}><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M11 4a7 7 0 1 0 .01 0M16 16l5 5" /></svg>Search everything<kbd aria-hidden="true">/</kbd></button>
          <nav aria-label="Pages">
            {shown.map((page) => (
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
          <ConfigurationNotice />
          <entry.page id={route.id} />
        </main>
        {searching ? <SearchDialog close={() => setSearching(false)} /> : null}
        <TokenDialog />
      </div>
    </MeContext.Provider>
  );
}

/** An edit of the configuration file that was refused, or that waits for a restart. */
function ConfigurationNotice() {
  const { data } = useApi<ConfigurationState>("/api/v1/configuration", 30_000);
  if (!data || (data.current && !data.restart_needed.length && !data.problems.length)) return null;
  return (
    <div class="away" role="status">
      {data.current ? null : <p>The configuration was edited and cannot be used. What it said before still holds.</p>}
      {data.current && data.restart_needed.length
        ? <p>The configuration was edited; the service must be restarted for: {data.restart_needed.join(", ")}.</p>
        : null}
      {data.current && data.problems.length ? <p>Some tools are missing; the others work.</p> : null}
      {data.problems.length ? <pre>{data.problems.join("\n")}</pre> : null}
    </div>
  );
}

/** For an address that leads to no page. */
const NOWHERE: PageEntry = {
  name: "", title: "Not here", icon: "",
  page: () => (
    <>
      <h1 tabIndex={-1}>Not here</h1>
      <Empty title="There is no such page"><p><a href={href("chat")}>Begin a conversation</a></p></Empty>
    </>
  ),
};

function Logo() {
  return <svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M19 7v12a6 6 0 0 1-11 3" /><circle cx="24" cy="9" r="2.5" /></svg>;
}

escapeDirections();
const place = document.getElementById("app")!;
place.replaceChildren();
render(<App />, place);
