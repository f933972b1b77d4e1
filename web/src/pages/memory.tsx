// Memory: what is remembered for whoever looks, found by words and by meaning, added and forgotten.

import { useRef, useState } from "preact/hooks";
import { send } from "../api";
import { brief, plural, pretty, when } from "../format";
import { useAction, useApi, useSettled } from "../hooks";
import { useMe } from "../me";
import { Confirm, Empty, Problem } from "../parts/small";
import { useRoute } from "../router";
import type { Documents, FoundDocuments, MemoryDocument } from "../shapes";

const PAGE = 30;
/** Of a text in the list: as much as a phone shows of it beside others. */
const SHOWN = 120;

export function MemoryPage() {
  const { query } = useRoute();
  const [text, setText] = useState(query.get("q") ?? "");
  const [page, setPage] = useState(0);
  const asked = useSettled(text.trim());
  const listed = useApi<Documents>(asked ? null : `/api/v1/memory/documents?limit=${PAGE}&offset=${page * PAGE}`, 4_000);
  const found = useApi<FoundDocuments>(asked ? `/api/v1/memory/search?${new URLSearchParams({ q: asked, limit: "20" })}` : null);
  const rows = asked
    ? found.data?.results.map((hit) => ({ document: hit.document, shown: hit.excerpt }))
    : listed.data?.documents.map((document) => ({ document, shown: document.text }));
  // What was there stays until what is asked for comes: a dialogue over one of its rows stays open, too.
  const drawn = useRef(rows);
  drawn.current = rows ?? drawn.current;
  const total = listed.data?.total ?? 0;
  const reload = (): void => (asked ? found : listed).reload();
  const may = useMe()?.can_change_memory ?? false;
  return (
    <>
      <h1 tabIndex={-1}>Memory</h1>
      {may ? <NewDocument added={reload} /> : <p class="note">You may look, and change nothing: that needs the permission <code>memory:write</code>.</p>}
      <div class="filters" role="search">
        <input type="search" aria-label="Search memory" placeholder="Search by words or meaning…" maxLength={500} value={text} onInput={(event) => { setText(event.currentTarget.value); setPage(0); }} />
      </div>
      <Problem text={listed.problem ?? found.problem} />
      {rows && !rows.length ? <Empty title={asked ? "Nothing like that is remembered" : "Nothing is remembered yet"}>{asked ? "Try other words." : <>Add something here, or import a folder: <code>journeyman memory import FOLDER</code></>}</Empty> : null}
      <ul class="list">{drawn.current?.map(({ document, shown }) => <li key={document.id}><Remembered document={document} shown={shown} may={may} gone={reload} /></li>)}</ul>
      {!asked && total > PAGE ? (
        <div class="buttons">
          <button disabled={!page} onClick={() => setPage(page - 1)}>Back</button>
          <button disabled={(page + 1) * PAGE >= total} onClick={() => setPage(page + 1)}>Next</button>
          <span class="quiet">{plural(total, "document")}</span>
        </div>
      ) : null}
    </>
  );
}

function NewDocument({ added }: { added: () => void }) {
  const [text, setText] = useState("");
  const { busy, problem, act } = useAction();
  const save = () => act(async () => {
    await send("POST", "/api/v1/memory/documents", { text });
    setText("");
    added();
  });
  return (
    <form class="remember" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <label for="remember">Remember</label>
      <textarea id="remember" rows={2} maxLength={100_000} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="buttons"><button class="primary" disabled={busy || !text.trim()}>Add</button></div>
      <Problem text={problem} />
    </form>
  );
}

function Remembered({ document, shown, may, gone }: { document: MemoryDocument; shown: string; may: boolean; gone: () => void }) {
  const [deleting, setDeleting] = useState(false);
  const [whole, setWhole] = useState(false);
  const said = brief(document.metadata).replaceAll('"', "");
  return (
    <div class="remembered">
      <p class="prose">{whole ? pretty(document.text) : `${pretty(shown.slice(0, SHOWN))}${shown.length > SHOWN ? "…" : ""}`}</p>
      {shown.length > SHOWN || shown.length < document.text.length ? <button class="quiet-button all" aria-expanded={whole} onClick={() => setWhole(!whole)}>{whole ? "Show less" : "Show all"}</button> : null}
      <p class="quiet facts"><span class="time">stored {when(document.created_at)}</span>{said ? <span>{said}</span> : null}</p>
      {may ? <button class="quiet-button" aria-label={`Delete: ${shown.slice(0, 60)}`} onClick={() => setDeleting(true)}>Delete…</button> : null}
      {deleting ? (
        <Confirm title="Forget this?" verb="Delete" no={() => setDeleting(false)} yes={async () => { await send("DELETE", `/api/v1/memory/documents/${encodeURIComponent(document.id)}`); gone(); setDeleting(false); }}>
          <p>It is gone for good, and no search finds it again. Backups made before still hold it.</p>
        </Confirm>
      ) : null}
    </div>
  );
}
