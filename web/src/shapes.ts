// What the service answers to questions other than events.

import type { Approval, CallStatus, Data, Risk, RunStatus } from "./events";

export interface Label {
  source: "rating" | "verifier" | "decision" | "judge";
  value: "good" | "bad";
  by: string | null;
  note: string;
}

export interface RunRow {
  id: string;
  agent: string;
  session_id: string | null;
  principal: string | null;
  status: RunStatus;
  last_seq: number;
  created_at: string;
  updated_at: string;
  position: number | null;
  trouble: string | null;
  cancel_wanted: boolean;
  request: string;
  waits_until: string | null;
  outcome: Outcome | null;
  model: string | null;
  input_tokens: number | null;
  output_tokens: number | null;
  cost: number | null;
}

export type Outcome = "achieved" | "partly" | "not" | "unknown";

export interface Runs {
  runs: RunRow[];
  total: number;
  next_after: string | null;
}

export interface Wait {
  reason: string;
  whom: string;
  until: string | null;
  text: string;
}

export interface RunDetails {
  run: RunRow;
  task: string;
  waits: Wait[];
}

export interface SessionRow {
  id: string;
  title: string;
  principal: string | null;
  updated_at: string;
  message_count: number;
}

export interface Sessions {
  sessions: SessionRow[];
  next_cursor: string | null;
}

export interface AgentRow {
  name: string;
  description: string;
  model: string;
  model_name: string | null;
  starters: string[];
  tools: string[];
  ready: boolean;
  problem: string | null;
}

export interface ToolRow {
  name: string;
  description: string;
  category: string;
  risk: Risk;
  enabled: boolean;
  read_only: boolean;
  idempotent: boolean;
  permissions: string[];
  permitted: boolean;
  timeout_seconds: number;
  version: string;
  deprecated: boolean | string;
  signature: string;
  parameters: { properties?: Record<string, Data>; required?: string[] };
}

export interface ToolHealth {
  tool: string;
  calls: number;
  success_rate: number;
  p50_ms: number;
  p95_ms: number;
  history: [number, number][];
}

export interface Split {
  name: string;
  stopped: boolean;
  arms: { name: string; share: number; success_count: number; failure_count: number }[];
}

export interface ReportRow {
  id: string;
  name: string;
  created_at: string;
  winner: string | null;
}

export interface Gap {
  key: string;
  missing: string;
  times: number;
  people: number;
  last_at: string;
  report: { attempted_task: string; existing_tools_checked: string[] };
  run_id: string | null;
  dismissed_at: string | null;
}

export interface Figure {
  mean: number;
  low: number | null;
  high: number | null;
}

export interface Report {
  name: string;
  paired: boolean;
  alpha: number;
  look: number;
  looks: number;
  winner: string | null;
  arms: { arm: string; units: number; observations: number; failures: number; figures: Record<string, Figure> }[];
  comparisons: { a: string; b: string; difference: number; low: number | null; high: number | null; p: number; p_corrected: number }[];
}

export interface AuditRow {
  seq: number;
  time: string;
  kind: string;
  actor: string | null;
  run_id: string | null;
  subject: string;
  details: Data;
  previous: string;
  hash: string;
}

export interface AskedApproval extends Approval {
  request: string;
  agent: string;
}

export interface Approvals {
  approvals: AskedApproval[];
  total: number;
  next_after: string | null;
}

export interface ApprovalDetails extends AskedApproval {
  earlier: { tool_name: string; arguments: Data; status: CallStatus; came_to: string }[];
  edited_arguments: Data | null;
}

export type TaskStatus = "pending" | "in_progress" | "completed";
export type Priority = "low" | "medium" | "high" | "critical";

export interface Attachment {
  id: string;
  type: string;
  reference: string;
  title: string | null;
  content: string | null;
  metadata: Data;
}

export interface Task {
  id: string;
  title: string;
  description: string | null;
  status: TaskStatus;
  priority: Priority;
  eta: string | null;
  tags: string[];
  updated_at: string;
  attachments: Attachment[];
}

export interface Tasks {
  tasks: Task[];
  total: number;
}

export interface MemoryDocument {
  id: string;
  text: string;
  metadata: Data;
  created_at: string;
}

export interface Documents {
  documents: MemoryDocument[];
  total: number;
}

export interface FoundDocuments {
  results: { document: MemoryDocument; excerpt: string; score: number }[];
}

export interface Strategy {
  id: string;
  content: string;
  state: string;
  state_reason: string;
  tool_sequence: string[];
  helpful_count: number;
  harmful_count: number;
  recent: boolean[];
  holdout_helpful: number;
  holdout_harmful: number;
  label_sources: Record<string, number>;
  models: string[];
  provenance: string[];
  principal_id: string | null;
  demonstration: {
    request: string;
    calls: { tool_name: string; arguments: Record<string, unknown>; result: string; effect: boolean }[];
    closing: string;
  } | null;
}

export interface StrategyView {
  strategy: Strategy;
  effect: [number, number, number] | null;
  effect_text: string;
}

export interface PlaybookView {
  domain: string;
  version: number;
  strategies: StrategyView[];
  pitfalls: { id: string; content: string; helpful_count: number; provenance: string[] }[];
  history: { version: number; at: string; reason: string; changed: number; removed: number }[];
  can_change: boolean;
}

export interface PlaybookDiff {
  since: number;
  to: number;
  bullets: {
    id: string;
    kind: "added" | "changed" | "removed";
    title: string;
    fields: { field: string; before: unknown; after: unknown }[];
  }[];
}

/** One step of a run: what the model saw before it, what it said, and what the gate decided then and would today. */
export interface StepDetails {
  iteration: number;
  steps: number;
  messages: { role: string; content: string }[];
  tools: string[];
  text: string;
  calls: { call_id: string; tool_name: string; then: string; today: string | null; rule: string }[];
}

export interface ReplayReport {
  verdict: string;
  findings: { change: string; tool: string; rule: string; calls: number }[];
}

export interface WrittenTest {
  test: string;
  recording: string;
  replaced: number;
}
