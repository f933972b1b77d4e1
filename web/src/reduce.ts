// The one place that turns events into what is shown. Pure: the same events give the same view, in any tab, after any
// reload, whoever started the run. Facts are taken once and in order; signals only change what is under way.

import type {
  CallRecord, Advice, Approval, ArgumentSource, ApprovalStatus, CallStatus, Data, ErrorInfo, Medium, Resolution, Risk, RunEvent, RunStatus, ToolCall, Usage,
} from "./events";
import { ended } from "./events";

export interface CallView {
  id: string;
  tool: string;
  arguments: Data;
  malformed: string | null;
  status: CallStatus;
  risk: Risk | null;
  confidence: number | null;
  attempts: number;
  cached: boolean;
  startedAt: number | null;
  endedAt: number | null;
  durationMs: number | null;
  result: unknown;
  /** What it came to, as Markdown for people. */
  rendered: string;
  /** Where the whole of a large result is kept. */
  artifact: string | null;
  media: Medium[];
  error: ErrorInfo | null;
  progress: { message: string; fraction: number | null } | null;
  approval: ApprovalView | null;
  resolution: { action: Resolution; by: string | null } | null;
  /** Where each argument came from, once that is known. */
  grounding: ArgumentSource[];
}

export interface ApprovalView extends Approval {
  /** What a person put in place of the arguments. */
  edited: Data | null;
}

export interface StepView {
  iteration: number;
  /** What the model is writing just now. */
  draft: string;
  text: string;
  thought: string;
  calls: CallView[];
  model: string;
  askedAt: number | null;
  answeredAt: number | null;
  endedAt: number | null;
  durationMs: number | null;
  nudge: string | null;
}

export interface RunState {
  id: string;
  /** The number of the last fact that is in here. */
  seq: number;
  status: RunStatus;
  /** Among the runs that wait for their turn. */
  place: number | null;
  task: string;
  media: Medium[];
  agent: string;
  model: string;
  sessionId: string | null;
  principal: string | null;
  startedAt: number | null;
  endedAt: number | null;
  steps: StepView[];
  answer: { text: string; confidence: number | null } | null;
  error: ErrorInfo | null;
  /** What no tool could do. */
  missing: string[];
  strategies: string[];
  /** Which of many tools the model was told of, and why. */
  offers: string[];
  /** When the run stood still and waited for a person. */
  pauses: { from: number; to: number | null }[];
  usage: Usage;
}

export function emptyRun(id: string, task = "", sessionId: string | null = null, media: Medium[] = []): RunState {
  return {
    id, task, media, sessionId, seq: 0, status: "queued", place: null, agent: "", model: "", principal: null, startedAt: null,
    endedAt: null, steps: [], answer: null, error: null, missing: [], strategies: [], offers: [], pauses: [],
    usage: { input_tokens: 0, output_tokens: 0, requests: 0 },
  };
}

export function reduce(run: RunState, event: RunEvent): RunState {
  if (event.seq === null) return signal(run, event);
  if (event.seq <= run.seq) return run;
  return { ...fact(run, event), seq: event.seq };
}

/** What was being written begins anew: after a fault of the model, or because a new connection tells it all. */
export function withoutDrafts(run: RunState): RunState {
  if (!run.steps.some((step) => step.draft)) return run;
  return { ...run, steps: run.steps.map((step) => (step.draft ? { ...step, draft: "" } : step)) };
}

function signal(run: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case "text_delta":
      return onStep(run, event.iteration, (step) => ({ ...step, draft: step.draft + event.text }));
    case "run_queued":
      return { ...run, place: event.position };
    case "step_restarted":
      return withoutDrafts(run);
    case "call_progress":
      return onCall(run, event.call_id, () => ({ progress: { message: event.message, fraction: event.fraction } }));
    default:
      return run;
  }
}

function fact(run: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case "run_started":
      return {
        ...run, status: "running", task: event.task.description, media: event.task.media ?? [], sessionId: event.task.session_id,
        agent: event.agent.name, model: event.agent.model, principal: event.principal?.id ?? null,
        startedAt: seconds(event.time),
      };
    case "run_resumed":
      return { ...withoutDrafts(run), status: "running", error: null, pauses: closed(run.pauses, seconds(event.time)) };
    case "strategies_injected":
      return { ...run, strategies: [...run.strategies, ...event.advice.filter((item) => !item.holdout).map(shown)] };
    case "tools_offered":
      return event.added.length ? { ...run, offers: [...run.offers, offer(event)] } : run;
    case "message":
      return onStep({ ...run, usage: sum(run.usage, event.usage) }, event.iteration, (step) => ({
        ...step, draft: "", text: event.text, model: event.model, askedAt: event.started === null ? null : seconds(event.started), answeredAt: seconds(event.time),
      }));
    case "calls_planned":
      return onStep(run, event.iteration, (step) => ({ ...step, calls: event.calls.map(planned) }));
    case "approval_requested":
      return onCall(run, event.approval.call_id, () => ({
        ...(event.approval.question ? {} : { risk: event.approval.risk, arguments: event.approval.arguments }),
        approval: { ...event.approval, edited: null },
      }));
    case "approval_decided":
      return onCall(run, event.call_id, (call) => ({ approval: decided(call.approval, event) }));
    case "call_started":
      return onCall(run, event.call_id, (call) => ({
        status: "running", arguments: event.arguments, attempts: event.attempt,
        startedAt: call.startedAt ?? seconds(event.time), progress: null, error: null,
      }));
    case "call_finished": {
      const record = event.record;
      return onCall(run, record.call_id, (call) => ({
        status: record.status, arguments: record.arguments, result: resultOf(record), error: record.error,
        rendered: event.rendered ?? "", artifact: record.artifact?.id ?? null, media: record.media ?? [],
        attempts: record.attempts, cached: record.cached, risk: record.risk ?? call.risk,
        grounding: record.grounding ?? [],
        confidence: record.confidence ?? call.confidence, durationMs: record.duration_ms,
        startedAt: call.startedAt ?? seconds(record.start_time), endedAt: seconds(record.end_time), progress: null,
      }));
    }
    case "call_resolved":
      return onCall(run, event.call_id, (call) => ({
        resolution: { action: event.action, by: event.by },
        ...(event.action === "rerun" ? { status: "pending", error: null } : { status: call.status }),
      }));
    case "step_finished":
      return onStep(run, event.iteration, (step) => ({
        ...step, thought: event.thought, durationMs: event.duration_ms, nudge: event.nudge, endedAt: seconds(event.time),
        calls: step.calls.map((call) => ({ ...call, rendered: event.rendered?.[call.id] ?? call.rendered })),
      }));
    case "step_restarted":
      return { ...run, steps: run.steps.filter((step) => step.iteration !== event.iteration) };
    case "answer":
      return { ...run, answer: { text: event.text, confidence: event.confidence } };
    case "run_suspended":
      return { ...run, status: event.status, error: event.error ?? null, pauses: [...run.pauses, { from: seconds(event.time), to: null }] };
    case "run_finished":
      return over({ ...run, status: event.status, error: event.error, missing: event.gap?.missing_tools ?? [] }, seconds(event.time));
    case "run_failed":
      return over({ ...run, status: "failed", error: event.error }, seconds(event.time));
    default:
      return run;
  }
}

function over(run: RunState, time: number): RunState {
  return { ...withoutDrafts(run), endedAt: time, pauses: closed(run.pauses, time) };
}

function closed(pauses: RunState["pauses"], time: number): RunState["pauses"] {
  return pauses.map((pause) => (pause.to === null ? { ...pause, to: time } : pause));
}

function decided(
  approval: ApprovalView | null,
  event: { status: ApprovalStatus; by: string | null; reason: string | null; arguments: Data | null },
): ApprovalView | null {
  if (!approval) return null;
  return { ...approval, status: event.status, decided_by: event.by, reason: event.reason, edited: event.arguments };
}

function planned(call: ToolCall): CallView {
  return {
    id: call.id, tool: call.tool_name, arguments: call.arguments, malformed: call.malformed, status: "pending",
    risk: null, confidence: call.confidence, attempts: 0, cached: false, startedAt: null, endedAt: null,
    durationMs: null, result: null, rendered: "", artifact: null, media: [], error: null, progress: null, approval: null, resolution: null, grounding: [],
  };
}

function onStep(run: RunState, iteration: number, change: (step: StepView) => StepView): RunState {
  const at = run.steps.findIndex((step) => step.iteration === iteration);
  if (at >= 0) return { ...run, steps: run.steps.with(at, change(run.steps[at]!)) };
  const fresh: StepView = {
    iteration, draft: "", text: "", thought: "", calls: [], model: "", askedAt: null, answeredAt: null, endedAt: null,
    durationMs: null, nudge: null,
  };
  return { ...run, steps: [...run.steps, change(fresh)] };
}

function onCall(run: RunState, id: string, change: (call: CallView) => Partial<CallView>): RunState {
  const steps = run.steps.map((step) => {
    const call = step.calls.find((item) => item.id === id);
    if (!call) return step;
    const changed = { ...call, ...change(call) };
    return { ...step, calls: step.calls.map((item) => (item === call ? changed : item)) };
  });
  return { ...run, steps };
}

function sum(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    requests: a.requests + b.requests,
  };
}

const seconds = (time: string): number => Date.parse(time) / 1000;

// --- questions about a run

export const calls = (run: RunState): CallView[] => run.steps.flatMap((step) => step.calls);

export const asks = (call: CallView, run: RunState): boolean =>
  (call.status === "pending" || !!call.approval?.question) && call.approval?.status === "pending" && !ended(run.status);

export const unsettled = (call: CallView, run: RunState): boolean => call.status === "unknown" && !ended(run.status);

/** The step whose text is the answer, or is becoming it. */
export function answerStep(run: RunState): StepView | null {
  const last = run.steps.at(-1);
  if (!last || last.calls.length) return null;
  if (run.answer) return last.text.trim() === run.answer.text.trim() ? last : null;
  return ended(run.status) ? null : last;
}

/** What the run is doing, in a few words, for somebody who may decide or who may not. */
export function doing(run: RunState, decides: boolean): string {
  const all = calls(run);
  const asking = all.filter((call) => asks(call, run)).map((call) => call.tool);
  if (asking.length) return `Waiting for ${decides ? "your" : "somebody's"} decision: ${asking.join(", ")}`;
  const open = all.filter((call) => unsettled(call, run)).map((call) => call.tool);
  if (open.length) return `Outcome unknown, ${decides ? "your" : "somebody's"} word is needed: ${open.join(", ")}`;
  // Whether it did what was asked is told beside the answer.
  if (ended(run.status)) return run.status === "completed" ? "Finished" : STATUS[run.status];
  if (run.status === "stuck") return `Stuck: ${run.error?.message ?? "processes die on it"}`;
  const running = all.filter((call) => call.status === "running").map((call) => call.tool);
  if (running.length) return `Running ${running.join(", ")}…`;
  if (run.status === "queued") return run.place === null ? "Waiting for its turn…" : `Waiting for its turn, as number ${run.place}…`;
  return answerStep(run)?.draft ? "Writing…" : "Thinking…";
}

/** A call's result, or what is at hand of a large one. */
export function resultOf({ artifact, result }: CallRecord): unknown {
  if (!artifact) return result;
  const left = artifact.chars - artifact.head.length - artifact.tail.length;
  return `${artifact.head}\n… [${left} more characters] …\n${artifact.tail}`;
}

export const STATUS: Record<RunStatus, string> = {
  queued: "Queued",
  running: "Running",
  awaiting_approval: "Needs approval",
  awaiting_resolution: "Outcome unknown",
  stuck: "Stuck",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  limit_reached: "Limit reached", unknown: "Written by a newer version",
};

const REASONS: Record<string, string> = {
  strategy: "as in earlier runs", used: "as before", chosen: "they fit the request", called: "the model called it",
  found: "found by the model", fallback: "instead of", cut: "to read a long result",
};

function offer(event: Extract<RunEvent, { type: "tools_offered" }>): string {
  const because = event.because === null ? "" : ` ${event.because}`;
  return `Step ${event.iteration}, ${REASONS[event.reason] ?? event.reason}${because}: ${event.added.join(", ")}`;
}

const shown = (advice: Advice): string => advice.text || advice.turns.map((turn) => turn.content).join(" → ");
