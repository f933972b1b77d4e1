// What a task refers to: shown, added, removed, and fetched anew where a tool can do that.

import { useState } from "preact/hooks";
import { ApiError, send } from "../api";
import type { CallRecord } from "../events";
import { useAction, useApi } from "../hooks";
import { Markdown } from "../markdown";
import type { Attachment, Task, ToolRow } from "../shapes";
import { Badge, Confirm, Problem } from "./small";

const REFRESH = "refresh_attachment";

export function Attachments({ task, may, changed }: { task: Task; may: boolean; changed: () => Promise<unknown> }) {
  const { data: tool } = useApi<ToolRow>(`/api/v1/tools/${REFRESH}`);
  return (
    <>
      {task.attachments.length ? (
        <ul class="list attachments">
          {task.attachments.map((item) => (
            <li key={item.id}><One item={item} may={may} fetches={Boolean(tool?.enabled && tool.permitted) && item.type === "github"} changed={changed} /></li>
          ))}
        </ul>
      ) : <p class="quiet">Nothing is attached.</p>}
      {may ? <Add task={task} changed={changed} /> : null}
    </>
  );
}

function One({ item, may, fetches, changed }: { item: Attachment; may: boolean; fetches: boolean; changed: () => Promise<unknown> }) {
  const [removing, setRemoving] = useState(false);
  const { busy, problem, act } = useAction();
  const refresh = () => act(async () => {
    // By the tool, so that it passes the same checks as a call by an agent.
    const { record } = await send<{ record: CallRecord | null }>("POST", `/api/v1/tools/${REFRESH}/call`, { arguments: { attachment_id: item.id } });
    if (record?.error) throw new ApiError({ error: record.error.message, code: record.error.code, status: 200 });
    await changed();
  });
  const state = typeof item.metadata.state === "string" ? item.metadata.state : null;
  return (
    <div class="attachment">
      <div class="title">
        <span class="names">
          <Badge>{item.type}</Badge> {state ? <Badge kind="busy">{state}</Badge> : null} <strong>{item.title}</strong>{" "}
          <Address to={item.reference} />
        </span>
        <span class="doings">
          {fetches ? <button class="quiet-button" disabled={busy} onClick={() => void refresh()}>{busy ? "Refreshing…" : "Refresh"}<span class="sr-only"> {item.reference}</span></button> : null}
          {may ? <button class="quiet-button" disabled={busy} onClick={() => setRemoving(true)}>Remove<span class="sr-only"> {item.reference}</span></button> : null}
        </span>
      </div>
      {item.content ? <details><summary>Content</summary><Markdown text={item.content} /></details> : null}
      <Problem text={problem} />
      {removing ? (
        <Confirm title="Remove this attachment?" verb="Remove" no={() => setRemoving(false)} yes={async () => { await send("DELETE", `/api/v1/attachments/${encodeURIComponent(item.id)}`); await changed(); }}>
          <p>{item.reference}</p>
        </Confirm>
      ) : null}
    </div>
  );
}

/** A link only where it leads to a web page: an address is whatever somebody has written. */
function Address({ to }: { to: string }) {
  return /^https?:\/\//i.test(to) ? <a href={to} target="_blank" rel="noopener noreferrer nofollow">{to}</a> : <code>{to}</code>;
}

function Add({ task, changed }: { task: Task; changed: () => Promise<unknown> }) {
  const [reference, setReference] = useState("");
  const { busy, problem, act } = useAction();
  const add = () => act(async () => {
    await send("POST", `/api/v1/tasks/${encodeURIComponent(task.id)}/attachments`, { reference: reference.trim() });
    setReference("");
    await changed();
  });
  return (
    <form class="inline" onSubmit={(event) => { event.preventDefault(); void add(); }}>
      <input aria-label="Address to attach" placeholder="https://…" maxLength={2000} value={reference} onInput={(event) => setReference(event.currentTarget.value)} />
      <button disabled={busy || !reference.trim()}>Attach</button>
      <Problem text={problem} />
    </form>
  );
}
