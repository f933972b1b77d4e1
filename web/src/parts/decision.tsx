// The two questions a run puts to a person: may this call run, and what became of that one.

import { useState } from "preact/hooks";
import { send } from "../api";
import type { Approval, Data, Resolution } from "../events";
import { countdown } from "../format";
import { useAction, useNow } from "../hooks";
import type { CallView } from "../reduce";
import { Code, JsonField, Problem, RiskBadge, useJson } from "./small";

export function ApprovalCard({ approval, inSession, decided }: {
  approval: Approval; inSession: boolean; decided?: () => void;
}) {
  const [mode, setMode] = useState<"ask" | "edit" | "deny">("ask");
  const [session, setSession] = useState(false);
  const [reason, setReason] = useState("");
  const field = useJson(JSON.stringify(approval.arguments, null, 2), "object");
  const { busy, problem, act } = useAction();
  const left = Date.parse(approval.expires_at) - useNow(true);
  const decide = (verb: "approve" | "deny", body: Data) =>
    act(async () => {
      await send("POST", `/api/v1/approvals/${approval.id}/${verb}`, body);
      decided?.();
    });
  const approve = (edited: boolean) => {
    const value = edited ? field.read() : null;
    if (value === undefined) return;
    void decide("approve", { ...(edited ? { arguments: value } : {}), for_session: session });
  };
  const stop = busy || left <= 0;
  return (
    <section class="decision" data-decision aria-label={`Approval needed: ${approval.tool_name}`} tabIndex={-1}>
      <header>
        <strong>May <code>{approval.tool_name}</code> run?</strong>
        <RiskBadge risk={approval.risk} />
        <span class={`timer${left < 60_000 ? " soon" : ""}`} role="timer" aria-label="Time left to decide">
          {left > 0 ? `${countdown(left)} left` : "expired"}
        </span>
      </header>
      <p class="quiet">
        {approval.principal ? <>Asked for <strong>{approval.principal.id}</strong>. </> : null}
        {approval.confidence === null ? null : <>The model is {Math.round(approval.confidence * 100)} % sure. </>}
        What you approve is exactly what runs.
      </p>
      {mode === "edit" ? (
        <JsonField id={`edit-${approval.id}`} label="Arguments, as they are to run" field={field} />
      ) : (
        <Arguments data={approval.arguments} />
      )}
      {mode === "deny" ? (
        <div class="field">
          <label for={`reason-${approval.id}`}>Why not? The model will read it. (May stay empty.)</label>
          <input
            id={`reason-${approval.id}`} type="text" maxLength={2000} value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && !stop && void decide("deny", { reason })}
          />
        </div>
      ) : null}
      {inSession && mode !== "deny" ? (
        <label class="check">
          <input type="checkbox" checked={session} onChange={(event) => setSession(event.currentTarget.checked)} />
          <span>Also allow <code>{approval.tool_name}</code> for the rest of this conversation</span>
        </label>
      ) : null}
      <div class="buttons">
        {mode === "ask" ? (
          <>
            <button class="primary" disabled={stop} onClick={() => approve(false)}>Approve</button>
            <button disabled={stop} onClick={() => setMode("edit")}>Edit…</button>
            <button class="danger" disabled={stop} onClick={() => setMode("deny")}>Deny…</button>
          </>
        ) : mode === "edit" ? (
          <>
            <button class="primary" disabled={stop} onClick={() => approve(true)}>Approve with these arguments</button>
            <button disabled={busy} onClick={() => setMode("ask")}>Back</button>
          </>
        ) : (
          <>
            <button class="danger" disabled={stop} onClick={() => void decide("deny", { reason })}>Deny</button>
            <button disabled={busy} onClick={() => setMode("ask")}>Back</button>
          </>
        )}
      </div>
      <Problem text={problem} />
    </section>
  );
}

function Arguments({ data }: { data: Data }) {
  const entries = Object.entries(data);
  if (!entries.length) return <p class="quiet">It takes no arguments.</p>;
  return (
    <dl class="arguments">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{JSON.stringify(value, null, 2)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function UnknownCard({ runId, call }: { runId: string; call: CallView }) {
  const [done, setDone] = useState(false);
  const field = useJson("null", "any");
  const { busy, problem, act } = useAction();
  const settle = (action: Resolution, result?: unknown) =>
    act(() => send("POST", `/api/v1/runs/${runId}/calls/${encodeURIComponent(call.id)}/resolve`, { action, result }));
  const settleDone = () => {
    const result = field.read();
    if (result !== undefined) void settle("done", result);
  };
  return (
    <section class="decision" data-decision aria-label={`Outcome unknown: ${call.tool}`} tabIndex={-1}>
      <header>
        <strong>Did <code>{call.tool}</code> happen?</strong>
        <RiskBadge risk={call.risk} />
      </header>
      <p class="quiet">
        The service stopped while this call was under way, so nobody knows whether it took effect. Please look, then say.
        Nothing is run twice unless you choose so.
      </p>
      <Code label="Arguments" value={call.arguments} />
      {done ? <JsonField id={`result-${call.id}`} label="What it returned, for the model to read" field={field} rows={3} /> : null}
      <div class="buttons">
        {done ? (
          <>
            <button class="primary" disabled={busy} onClick={settleDone}>Take it as done</button>
            <button disabled={busy} onClick={() => setDone(false)}>Back</button>
          </>
        ) : (
          <>
            <button class="primary" disabled={busy} onClick={() => setDone(true)}>It was done…</button>
            <button class="danger" disabled={busy} onClick={() => void settle("rerun")}>Run it again</button>
            <button disabled={busy} onClick={() => void settle("skip")}>Leave it out</button>
          </>
        )}
      </div>
      <Problem text={problem} />
    </section>
  );
}
