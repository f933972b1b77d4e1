// A run as cards: what was asked, each step with its calls, the answer. Drawn from the run's state and nothing else.

import { Component, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ended } from "../events";
import { brief, duration } from "../format";
import { Markdown } from "../markdown";
import { answerStep, asks, unsettled, type CallView, type RunState, type StepView } from "../reduce";
import { ApprovalCard, UnknownCard, invented, originOf } from "./decision";
import { visible } from "../json";
import { MediaList, Pictures, Whole } from "./files";
import { Badge, CallMark, Code, RiskBadge, callLabel } from "./small";

export function RunCards({ run }: { run: RunState }) {
  const last = answerStep(run);
  const over = ended(run.status);
  return (
    <div class="run" data-run={run.id} data-status={run.status}>
      {run.strategies.length ? (
        <details class="strategies">
          <summary>Advice from earlier runs ({run.strategies.length})</summary>
          <ul>{run.strategies.map((text) => <li key={text}>{text}</li>)}</ul>
        </details>
      ) : null}
      {run.offers.length ? (
        <details class="strategies">
          <summary>Tools that were offered ({run.offers.length})</summary>
          <ul>{run.offers.map((text) => <li key={text}>{text}</li>)}</ul>
        </details>
      ) : null}
      {run.steps.map((step) => (step === last ? null : <Step key={step.iteration} step={step} run={run} over={over} />))}
      {last ? <Answer text={run.answer?.text ?? (last.text || last.draft)} writing={!run.answer} /> : null}
      {run.answer && !last ? <Answer text={run.answer.text} writing={false} /> : null}
      {thinks(run) ? (
        <p class="thinking" aria-hidden="true"><i /><i /><i /></p>
      ) : null}
      {run.error ? (
        <div class={run.status === "failed" ? "failure" : "note"}>
          <strong>{run.error.message}</strong>
          {run.error.user_guidance ? <p>{run.error.user_guidance}</p> : null}
          <p class="quiet">{run.error.code}</p>
        </div>
      ) : run.status === "cancelled" ? <div class="note">Cancelled.</div> : null}
    </div>
  );
}

/** Nothing else on the page shows that something goes on. */
function thinks(run: RunState): boolean {
  if (run.status !== "running" && run.status !== "queued") return false;
  const last = run.steps.at(-1);
  return !last || (last.calls.length ? last.calls.every((call) => call.endedAt !== null) : !last.draft && !last.text);
}

function Answer({ text, writing }: { text: string; writing: boolean }) {
  if (!text) return null;
  return <div class={`answer${writing ? " writing" : ""}`} data-answer={writing ? undefined : ""}><Markdown text={text} /></div>;
}

/** Redrawn only when something about it has changed: a long run has many, and a token concerns one. */
class Step extends Component<{ step: StepView; run: RunState; over: boolean }> {
  override shouldComponentUpdate(next: { step: StepView; run: RunState; over: boolean }): boolean {
    return next.step !== this.props.step || next.over !== this.props.over || next.run.sessionId !== this.props.run.sessionId;
  }

  override render(): ComponentChildren {
    const { step, run } = this.props;
    const said = step.text || step.draft;
    return (
      <div class="step" role="group" aria-label={`Step ${step.iteration}`}>
        <header>
          <span class="number" aria-hidden="true">{step.iteration}</span>
          <div class="thought">{said ? <Markdown text={said} /> : <span class="quiet">{thoughtOf(step)}</span>}</div>
          <span class="time">{duration(step.durationMs)}</span>
        </header>
        {step.calls.map((call) => <Call key={call.id} call={call} run={run} />)}
        {step.nudge ? <p class="note">The reply neither called a tool nor answered, so the model was asked again.</p> : null}
      </div>
    );
  }
}

function thoughtOf(step: StepView): string {
  const names = [...new Set(step.calls.map((call) => call.tool))];
  return names.length ? `Calls ${names.join(", ")}` : step.thought || "Thinks";
}

function Call({ call, run }: { call: CallView; run: RunState }) {
  const [opened, setOpened] = useState(false);
  const waiting = asks(call, run);
  const open = unsettled(call, run);
  const approval = call.approval;
  return (
    <div class="call" data-call={call.id} data-tool={call.tool} data-status={waiting ? "waiting" : call.status}>
      <details onToggle={(event) => event.currentTarget.open && setOpened(true)}>
        <summary>
          <CallMark status={call.status} waiting={waiting} />
          <code class="tool">{call.tool}</code>
          <span class="brief">{call.malformed ?? brief(call.arguments)}</span>
          <span class="marks">
            <RiskBadge risk={call.risk} />
            {call.grounding.some((item) => item.origin === "nowhere") ? <Badge kind="warn" title={invented(call.grounding)}>not grounded</Badge> : null}
            {call.cached ? <Badge title="Answered from the cache; nothing ran">cached</Badge> : null}
            {call.attempts > 1 ? <Badge kind="warn" title="It was tried more than once">{`${call.attempts} tries`}</Badge> : null}
            {call.resolution ? <Badge title={`Settled by ${call.resolution.by ?? "a person"}`}>{SETTLED[call.resolution.action]}</Badge> : null}
            <span class="time">{duration(call.durationMs)}</span>
          </span>
        </summary>
        {opened ? <div class="inside">
          {call.media.length ? <MediaList of={call.media} /> : call.status === "success" ? <Pictures of={call.result} /> : null}
          {call.status === "success" && call.rendered ? <Markdown text={call.rendered} /> : null}
          {call.malformed === null
            ? <Code label="Arguments" value={call.arguments} />
            : <Code label="Arguments, as the model wrote them" value={call.malformed} />}
          {call.status === "success" ? <Code label="Result" value={call.result} /> : null}
          {call.artifact ? <Whole runId={run.id} artifact={call.artifact} /> : null}
          {call.error ? <Code label={`Error ${call.error.code}`} value={call.error.message} /> : null}
          {call.error?.recover_action ? <Code label="What only the model was told" value={call.error.recover_action} /> : null}
          {call.grounding.length ? <p class="quiet origins">{call.grounding.map((item) => `${item.argument}: ${originOf(item)}`).join(" · ")}</p> : null}
          <p class="quiet">{facts(call)}</p>
        </div> : null}
      </details>
      {call.progress ? (
        <div class="progress">
          <progress aria-label={`Progress of ${call.tool}`} max={1} value={call.progress.fraction ?? undefined} />
          <span>{call.progress.message}</span>
        </div>
      ) : null}
      {call.error && !open ? (
        <p class="call-error">{call.error.message}{call.error.user_guidance ? <span class="quiet">{call.error.user_guidance}</span> : null}</p>
      ) : null}
      {approval && approval.status !== "pending" ? (
        <p class="decided">
          {approval.question ? `“${visible(approval.question.message)}” ${approval.status === "approved" ? "answered" : "not answered"}` : DECIDED[approval.status]}{approval.decided_by ? <> by <strong>{approval.decided_by}</strong></> : null}
          {approval.edited && !approval.question ? ", with changed arguments" : null}{approval.reason ? <>: “{approval.reason}”</> : null}
        </p>
      ) : null}
      {waiting ? <ApprovalCard key={approval!.id} approval={approval!} inSession={run.sessionId !== null} /> : null}
      {open ? <UnknownCard runId={run.id} call={call} /> : null}
    </div>
  );
}

const SETTLED = { rerun: "run again", done: "taken as done", skip: "left out" } as const;
const DECIDED = {
  pending: "", approved: "Approved", denied: "Denied", expired: "Nobody decided in time: denied",
  superseded: "Replaced by another question",
} as const;

function facts(call: CallView): string {
  const parts = [callLabel(call.status)];
  if (call.attempts) parts.push(`${call.attempts === 1 ? "1 attempt" : `${call.attempts} attempts`}`);
  if (call.confidence !== null) parts.push(`confidence ${Math.round(call.confidence * 100)} %`);
  return [...parts, call.id].join(" · ");
}
