// The two questions a run puts to a person: may this call run, and what became of that one.

import { useMemo, useState } from "preact/hooks";
import { send } from "../api";
import type { Approval, ArgumentSource, Data, Resolution } from "../events";
import { brief, countdown, duration } from "../format";
import { useAction, useApi, useNow } from "../hooks";
import { Exact, parse, visible, write } from "../json";
import { useMe } from "../me";
import { Markdown } from "../markdown";
import type { CallView } from "../reduce";
import type { ApprovalDetails, ToolRow } from "../shapes";
import { useFocusOn, useLeaving } from "./focus";
import { ArgumentsForm } from "./schema-form";
import { CallMark, Code, JsonField, Problem, RiskBadge, useJson } from "./small";

interface Card { approval: Approval; inSession: boolean; decided?: () => void; open?: boolean }

/** What a tool, or the server behind it, asks while it runs: a form, for whoever asked for the run. */
function QuestionCard({ approval, decided }: Card) {
  const blank = useMemo(() => Object.fromEntries(Object.entries(approval.arguments).filter(([, value]) => value !== null && value !== "")), [approval.id]);
  const field = useJson(visible(write(blank, 2)), "object");
  const { busy, problem, act } = useAction();
  const me = useMe();
  const leaving = useLeaving();
  useFocusOn(leaving.card, "ask");
  const left = Date.parse(approval.expires_at) - useNow(true);
  const put = (verb: "approve" | "deny", body: Data) =>
    act(async () => {
      leaving.decided();
      await send("POST", `/api/v1/approvals/${approval.id}/${verb}`, body);
      decided?.();
    });
  const answer = () => field.read() !== undefined && void put("approve", { arguments_json: field.text });
  const stop = busy || left <= 0;
  return (
    <section class="decision" data-decision ref={leaving.card} aria-label={`Question: ${approval.tool_name}`} tabIndex={-1}>
      <header>
        <strong><code>{approval.tool_name}</code> asks</strong>
        <span class={`timer${left < 60_000 ? " soon" : ""}`} role="timer" aria-label="Time left to answer">{left > 0 ? `${countdown(left)} left` : "expired"}</span>
      </header>
      <p class="about">{visible(approval.question!.message)}</p>
      <ArgumentsForm id={`answer-${approval.id}`} label="The answer" field={field} schema={approval.question!.form} />
      {me?.can_decide || approval.principal?.id === me?.id ? (
        <div class="buttons">
          <button class="primary" disabled={stop} onClick={answer}>Answer</button>
          <button disabled={stop} onClick={() => void put("deny", {})}>Decline</button>
        </div>
      ) : <p class="note">It waits for whoever asked for this run.</p>}
      <Problem text={problem} />
    </section>
  );
}

/** ``open``: what was read before is shown at once, and not on demand. */
export function ApprovalCard(card: Card) {
  return card.approval.question ? <QuestionCard {...card} /> : <PermissionCard {...card} />;
}

function PermissionCard({ approval, inSession, decided, open = false }: Card) {
  const [mode, setMode] = useState<"ask" | "edit" | "deny">("ask");
  const [session, setSession] = useState(false);
  const [reason, setReason] = useState("");
  const given = useMemo(() => parse<Data>(approval.arguments_json, { all: true }), [approval.id]);
  const field = useJson(visible(write(given, 2)), "object");
  const { busy, problem, act } = useAction();
  const { data: tool } = useApi<ToolRow>(mode === "edit" ? `/api/v1/tools/${encodeURIComponent(approval.tool_name)}` : null);
  const me = useMe();
  const leaving = useLeaving();
  useFocusOn(leaving.card, mode);
  const left = Date.parse(approval.expires_at) - useNow(true);
  const decide = (verb: "approve" | "deny", body: Data) =>
    act(async () => {
      leaving.decided();
      await send("POST", `/api/v1/approvals/${approval.id}/${verb}`, body);
      decided?.();
    });
  const approve = (edited: boolean) => {
    if (edited && field.read() === undefined) return;
    // As it was written: read and written again it could be another number.
    void decide("approve", { ...(edited ? { arguments_json: field.text } : {}), for_session: session });
  };
  const stop = busy || left <= 0;
  const may = me?.can_decide === true;
  // Who asked for it may take it back, and not allow it.
  const own = approval.four_eyes && approval.principal?.id === me?.id;
  return (
    <section class="decision" data-decision ref={leaving.card} aria-label={`Approval needed: ${approval.tool_name}`} tabIndex={-1}>
      <header>
        <strong>{approval.about ? <span class="about">{visible(approval.about)}</span> : <>May <code>{approval.tool_name}</code> run?</>}</strong>
        <RiskBadge risk={approval.risk} />
        <span class={`timer${left < 60_000 ? " soon" : ""}`} role="timer" aria-label="Time left to decide">
          {left > 0 ? `${countdown(left)} left` : "expired"}
        </span>
      </header>
      <p class="quiet">
        {approval.about ? <>May <code>{approval.tool_name}</code> run? </> : null}
        {approval.principal ? <>Asked for <strong>{visible(approval.principal.id)}</strong>. </> : null}
        {approval.confidence === null ? null : <>The model is {Math.round(approval.confidence * 100)} % sure. </>}
        What you approve is exactly what runs
        {approval.not_bound_to ? `; it is not bound to ${visible(approval.not_bound_to)}.` : "."}
      </p>
      {mode === "edit" ? (
        <ArgumentsForm id={`edit-${approval.id}`} label="Arguments, as they are to run" field={field} schema={tool?.parameters ?? null} />
      ) : (
        <Arguments data={given} sources={approval.grounding ?? []} />
      )}
      {approval.flow ? <p class="note ungrounded">Look twice: {visible(approval.flow)}.</p> : null}
      {approval.grounding?.some((item) => item.origin === "nowhere") ? (
        <p class="note ungrounded">Look twice: {invented(approval.grounding)}. The model may have invented it.</p>
      ) : null}
      {reasons(approval).map((reason) => <p key={reason} class="note">{reason}</p>)}
      <Earlier id={approval.id} open={open} />
      {mode === "deny" ? (
        <div class="field">
          <label for={`reason-${approval.id}`}>Why not? The model will read it, and so will whoever asks later.</label>
          <input
            id={`reason-${approval.id}`} type="text" maxLength={2000} required value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && !stop && reason.trim() && void decide("deny", { reason })}
          />
        </div>
      ) : null}
      {may && !own && inSession && approval.grant && mode !== "deny" ? (
        <label class="check">
          <input type="checkbox" checked={session} onChange={(event) => setSession(event.currentTarget.checked)} />
          <span>Also allow <code>{approval.tool_name}</code> {terms(approval.grant)}</span>
        </label>
      ) : null}
      {me?.can_decide === false ? <MayNot /> : null}
      {may && own ? <p class="note">Somebody else must approve it: it was asked for in your name.</p> : null}
      {may ? (
        <div class="buttons">
          {mode === "ask" ? (
            <>
              {own ? null : <button class="primary" disabled={stop} onClick={() => approve(false)}>Approve</button>}
              {own ? null : <button disabled={stop} onClick={() => setMode("edit")}>Edit…</button>}
              <button class="danger" disabled={stop} onClick={() => setMode("deny")}>Deny…</button>
            </>
          ) : mode === "edit" ? (
            <>
              <button class="primary" disabled={stop} onClick={() => approve(true)}>Approve with these arguments</button>
              <button disabled={busy} onClick={() => setMode("ask")}>Back</button>
            </>
          ) : (
            <>
              <button class="danger" disabled={stop || !reason.trim()} onClick={() => void decide("deny", { reason })}>Deny</button>
              <button disabled={busy} onClick={() => setMode("ask")}>Back</button>
            </>
          )}
        </div>
      ) : null}
      <Problem text={problem} />
    </section>
  );
}

/** Why this is asked at all, beyond the risk that is shown. */
function reasons(approval: Approval): string[] {
  return [
    approval.risk_raised ? "It is asked about because of its arguments: they make it riskier than the tool usually is." : "",
    approval.four_eyes ? "Four eyes are asked for: somebody else than the one it is for must approve." : "",
  ].filter(Boolean);
}

/** What the run has read and done before it asked. */
export function Earlier({ id, open = false }: { id: string; open?: boolean }) {
  const [wanted, setWanted] = useState(open);
  const { data, problem } = useApi<ApprovalDetails>(wanted ? `/api/v1/approvals/${encodeURIComponent(id)}` : null);
  return (
    <details class="earlier-calls" open={open} onToggle={(event) => event.currentTarget.open && setWanted(true)}>
      <summary>What was read before{data ? ` (${data.earlier.length})` : ""}</summary>
      <Problem text={problem} />
      {data && !data.earlier.length ? <p class="quiet">Nothing: it is the first call of its run.</p> : null}
      <ol>
        {data?.earlier.map((call, at) => (
          <li key={at}>
            <CallMark status={call.status} waiting={false} /> <code>{call.tool_name}</code> <span class="quiet">{brief(call.arguments)}</span>
            <div class="came-to"><Markdown text={call.came_to} /></div>
          </li>
        ))}
      </ol>
    </details>
  );
}

function terms({ uses, seconds }: { uses: number; seconds: number }): string {
  return `in this conversation, ${uses === 1 ? "once more" : `up to ${uses.toLocaleString()} times more`}, within ${duration(seconds * 1000)}`;
}

function MayNot() {
  return <p class="note">It waits for somebody who may decide. You may not: that needs the permission <code>approvals:decide</code>.</p>;
}

/** What an argument is said to come from, for people. */
const ORIGIN = {
  request: "from the request", history: "from the conversation before", result: "from an earlier result",
  system: "from the agent's instruction", default: "the tool's default", enum: "from the tool's list",
  person: "from the person who approved", computed: "written by the model", nowhere: "found nowhere",
} as const;

export function originOf(item: ArgumentSource): string {
  return item.origin === "result" && item.tool_name ? `from the result of ${item.tool_name}` : ORIGIN[item.origin];
}

export function invented(sources: ArgumentSource[]): string {
  const names = sources.filter((item) => item.origin === "nowhere").map((item) => visible(item.argument));
  return `${names.join(", ")} ${names.length === 1 ? "stands" : "stand"} neither in the request nor in any result so far`;
}

/** Of an argument with parts, those of its first parts: they mostly have one source. */
function origins(name: string, sources: ArgumentSource[]): string {
  const own = sources.filter((item) => item.argument === name || item.argument.startsWith(`${name}.`) || item.argument.startsWith(`${name}[`));
  return [...new Set(own.map(originOf))].join(", ");
}

export function Arguments({ data, sources }: { data: Data; sources: ArgumentSource[] }) {
  const entries = Object.entries(data);
  if (!entries.length) return <p class="quiet">It takes no arguments.</p>;
  return (
    <dl class="arguments">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>{visible(write(value, 2))}{origins(name, sources) ? <span class="origin">{visible(origins(name, sources))}</span> : null}</dd>
        </div>
      ))}
    </dl>
  );
}

export function UnknownCard({ runId, call }: { runId: string; call: CallView }) {
  const [done, setDone] = useState(false);
  const field = useJson("null", "any");
  const { busy, problem, act } = useAction();
  const me = useMe();
  const leaving = useLeaving();
  useFocusOn(leaving.card, done);
  const settle = (action: Resolution, result?: unknown) =>
    act(() => {
      leaving.decided();
      return send("POST", `/api/v1/runs/${runId}/calls/${encodeURIComponent(call.id)}/resolve`, { action, result });
    });
  const settleDone = () => {
    if (field.read() !== undefined) void settle("done", new Exact(field.text));
  };
  return (
    <section class="decision" data-decision ref={leaving.card} aria-label={`Outcome unknown: ${call.tool}`} tabIndex={-1}>
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
      {me?.can_decide === false ? <MayNot /> : null}
      {me?.can_decide ? (
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
      ) : null}
      <Problem text={problem} />
    </section>
  );
}
