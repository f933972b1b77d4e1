// Small parts that many others are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallStatus, Risk, RunStatus } from "../events";
import { pretty } from "../format";
import { parse, write } from "../json";
import { useAction } from "../hooks";
import { STATUS } from "../reduce";

const RISK: Record<Risk, { label: string; kind: string; title: string }> = {
  reversible: { label: "reversible", kind: "good", title: "Undone by an ordinary later call" },
  reversible_with_delay: { label: "hard to undo", kind: "warn", title: "Can be undone for a while, or with help" },
  irreversible: { label: "irreversible", kind: "bad", title: "Cannot be undone" },
};

export function Badge({ kind = "plain", title, children }: { kind?: string; title?: string; children: ComponentChildren }) {
  return <span class={`badge ${kind}`} title={title}>{children}</span>;
}

export function RiskBadge({ risk }: { risk: Risk | null }) {
  if (!risk) return null;
  const { label, kind, title } = RISK[risk];
  return <Badge kind={kind} title={title}>{label}</Badge>;
}

const KIND: Record<RunStatus, string> = {
  queued: "plain", running: "busy", awaiting_approval: "warn", awaiting_resolution: "warn", stuck: "bad", completed: "good",
  failed: "bad", cancelled: "plain", limit_reached: "warn", unknown: "plain",
};

export function StatusBadge({ status }: { status: RunStatus }) {
  return <Badge kind={KIND[status]}>{STATUS[status]}</Badge>;
}

const MARK: Record<CallStatus, { sign: string; kind: string; label: string }> = {
  pending: { sign: "○", kind: "", label: "planned" },
  running: { sign: "", kind: "spinner", label: "running" },
  success: { sign: "✓", kind: "good", label: "succeeded" },
  error: { sign: "✕", kind: "bad", label: "failed" },
  timeout: { sign: "✕", kind: "bad", label: "timed out" },
  cancelled: { sign: "–", kind: "", label: "cancelled" },
  denied: { sign: "⊘", kind: "bad", label: "denied" },
  unknown: { sign: "?", kind: "warn", label: "outcome unknown" },
};

export function CallMark({ status, waiting }: { status: CallStatus; waiting: boolean }) {
  const { sign, kind, label } = waiting ? { sign: "!", kind: "warn", label: "needs approval" } : MARK[status];
  return <span class={`mark ${kind}`} role="img" aria-label={label} title={label}>{sign}</span>;
}

export const callLabel = (status: CallStatus): string => MARK[status].label;

const SHOWN = 20_000;

/** Data as it is. Of a large one the beginning, and the rest on demand: nobody reads a megabyte, and drawing it takes long. */
export function Code({ label, value }: { label: string; value: unknown }) {
  const [whole, setWhole] = useState(false);
  const text = useMemo(() => (typeof value === "string" ? value : write(value, 2)), [value]);
  const cut = !whole && text.length > SHOWN;
  return (
    <div class="code">
      <div class="label">{label}</div>
      <pre tabIndex={0} aria-label={label}>{pretty(cut ? text.slice(0, SHOWN) : text)}{cut ? "…" : ""}</pre>
      {cut ? <button class="small" onClick={() => setWhole(true)}>Show all {text.length.toLocaleString()} characters</button> : null}
    </div>
  );
}

/** What went wrong. It can be put away, and goes by itself where the next try succeeds. */
export function Problem({ text }: { text: string | null }) {
  const [away, setAway] = useState<string | null>(null);
  useEffect(() => setAway(null), [text === null]);
  if (!text || text === away) return null;
  return <p class="problem" role="alert">{text}<button type="button" class="close" aria-label="Hide" title="Hide" onClick={() => setAway(text)}>×</button></p>;
}

/** Asks before something that cannot be undone is done. */
export function Confirm({ title, verb, children, yes, no }: {
  title: string; verb: string; children: ComponentChildren; yes: () => Promise<unknown>; no: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { busy, problem, act } = useAction();
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    // Afterwards: as long as the dialog is there, nothing else can have the focus.
    return () => void setTimeout(() => before instanceof HTMLElement && before.isConnected && before.focus({ preventScroll: true }));
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onCancel={(event) => { event.preventDefault(); no(); }}>
      <h2 id="confirm-title">{title}</h2>
      {children}
      <Problem text={problem} />
      <div class="buttons">
        <button class="danger" disabled={busy} onClick={() => void act(yes)}>{verb}</button>
        <button autofocus disabled={busy} onClick={no}>Keep</button>
      </div>
    </dialog>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children}</div>;
}

export interface JsonState {
  text: string;
  setText: (text: string) => void;
  problem: string | null;
  read: () => unknown;
}

/** A text field for JSON that says what is wrong with it. `read` gives the value, or undefined where it is none. */
export function useJson(initial: string, kind: "object" | "any"): JsonState {
  const [text, setText] = useState(initial);
  const [problem, setProblem] = useState<string | null>(null);
  const read = (): unknown => {
    try {
      const value = parse(text, { all: true });
      if (kind === "object" && (value === null || typeof value !== "object" || Array.isArray(value))) {
        throw new Error('write an object, like {"name": "value"}');
      }
      setProblem(null);
      return value;
    } catch (error) {
      setProblem(`This is not JSON: ${(error as Error).message}`);
      return undefined;
    }
  };
  return { text, setText, problem, read };
}

export function JsonField({ id, label, field, rows }: { id: string; label: string; field: JsonState; rows?: number }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id} class="mono" spellcheck={false} rows={rows ?? Math.min(14, field.text.split("\n").length + 1)}
        value={field.text} aria-invalid={field.problem ? "true" : undefined}
        onInput={(event) => field.setText(event.currentTarget.value)}
      />
      <Problem text={field.problem} />
    </div>
  );
}
