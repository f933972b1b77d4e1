// What the service sends: the events of a run, and the data inside them.

export type Data = Record<string, unknown>;
export type Risk = "reversible" | "reversible_with_delay" | "irreversible";
export type RunStatus =
  | "queued" | "running" | "awaiting_approval" | "awaiting_resolution" | "stuck"
  | "completed" | "failed" | "cancelled" | "limit_reached" | "unknown";
export type CallStatus =
  | "pending" | "running" | "success" | "error" | "timeout" | "cancelled" | "denied" | "unknown";
export type ApprovalStatus = "pending" | "approved" | "denied" | "expired" | "superseded";
export type Resolution = "rerun" | "done" | "skip";

export interface ErrorInfo {
  code: string;
  message: string;
  recover_action?: string | null;
  user_guidance?: string | null;
}

export interface Principal {
  id: string;
}

/** Where the value of one argument came from. */
export interface ArgumentSource {
  argument: string;
  origin: "request" | "history" | "result" | "system" | "default" | "enum" | "person" | "computed" | "nowhere";
  call_id: string | null;
  tool_name: string | null;
}

export interface Approval {
  id: string;
  run_id: string;
  call_id: string;
  tool_name: string;
  arguments: Data;
  /** The same, exactly as it will run. */
  arguments_json: string;
  /** What may still change after the answer, because nobody can look at it. */
  not_bound_to: string;
  /** What the call is about, in words. */
  about: string;
  /** Where each argument came from; null where no model wrote the call. */
  grounding: ArgumentSource[] | null;
  /** What the call asks while it runs, where it is not asked about: the arguments are the answer. */
  question?: { message: string; form: Data };
  /** Which words come from where, if that is why it is asked. */
  flow?: string;
  /** How far a grant for the conversation would go; null where none can be given. */
  grant: { uses: number; seconds: number } | null;
  /** Somebody else than the principal must approve. */
  four_eyes: boolean;
  /** The arguments themselves raise the risk. */
  risk_raised?: boolean;
  risk: Risk;
  confidence: number | null;
  principal: Principal | null;
  status: ApprovalStatus;
  requested_at: string;
  expires_at: string;
  decided_at: string | null;
  decided_by: string | null;
  reason: string | null;
}

export interface ToolCall {
  id: string;
  tool_name: string;
  arguments: Data;
  malformed: string | null;
  confidence: number | null;
}

/** An image or a file: its bytes in base64, or the artifact of a run that has them. */
export interface Medium {
  mime_type: string;
  bytes: number;
  name?: string;
  data?: string;
  artifact?: string;
  run_id?: string;
}

export interface CallRecord {
  call_id: string;
  tool_name: string;
  arguments: Data;
  status: CallStatus;
  result: unknown;
  /** In the place of a large result: where the whole is kept, how it begins and how it ends. */
  artifact?: { id: string; chars: number; head: string; tail: string } | null;
  media?: Medium[];
  error: ErrorInfo | null;
  start_time: string;
  end_time: string;
  duration_ms: number;
  attempts: number;
  cached: boolean;
  risk: Risk | null;
  confidence: number | null;
  grounding?: ArgumentSource[] | null;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  requests: number;
}

export interface Advice {
  strategy_id: string | null; form: "system" | "steps" | "turns" | "lookups"; text: string; turns: { role: string; content: string }[];
  holdout: boolean;
}

type Of<Type extends string, Fields> = { type: Type; run_id: string; seq: number | null; time: string } & Fields;

export type RunEvent =
  | Of<"run_started", {
      agent: { name: string; model: string };
      task: { description: string; session_id: string | null; media?: Medium[] };
      principal: Principal | null;
    }>
  | Of<"run_resumed", { owner: string }>
  | Of<"strategies_injected", { advice: Advice[] }>
  | Of<"tools_offered", {
      iteration: number; reason: string; added: string[]; dropped: string[]; because: string | null;
    }>
  | Of<"message", {
      iteration: number; text: string; calls: ToolCall[]; usage: Usage; confidence: number | null; model: string;
      started: string | null;
    }>
  | Of<"calls_planned", { iteration: number; calls: ToolCall[] }>
  | Of<"approval_requested", { approval: Approval }>
  | Of<"approval_decided", {
      approval_id: string; call_id: string; status: ApprovalStatus; by: string | null; reason: string | null;
      arguments: Data | null;
    }>
  | Of<"call_started", { call_id: string; tool_name: string; attempt: number; arguments: Data }>
  /** ``rendered``: what it came to, as Markdown for people. */
  | Of<"call_finished", { record: CallRecord; rendered?: string }>
  | Of<"call_resolved", { call_id: string; action: Resolution; by: string | null }>
  /** ``rendered``: by call, the words of tools that have their own. */
  | Of<"step_finished", {
      iteration: number; thought: string; duration_ms: number; nudge: string | null; rendered?: Record<string, string> | null;
    }>
  | Of<"step_restarted", { iteration: number }>
  | Of<"answer", { text: string; confidence: number | null }>
  | Of<"run_suspended", { status: RunStatus; waiting_for: string[]; error?: ErrorInfo | null }>
  | Of<"run_finished", { status: RunStatus; error: ErrorInfo | null; gap?: { missing_tools: string[] } | null }>
  | Of<"run_failed", { error: ErrorInfo }>
  | Of<"run_queued", { position: number }>
  | Of<"text_delta", { iteration: number; text: string }>
  | Of<"call_progress", { call_id: string; message: string; fraction: number | null }>;

const ENDED: ReadonlySet<RunStatus> = new Set<RunStatus>(["completed", "failed", "cancelled", "limit_reached"]);

export const ended = (status: RunStatus): boolean => ENDED.has(status);
