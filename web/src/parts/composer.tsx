// Where one writes. Nothing that was written or pasted is ever cut: what is too long is said, and stays.

import { useEffect, useRef, useState } from "preact/hooks";
import { explain, send } from "../api";
import { ended, type Medium } from "../events";
import { useAction } from "../hooks";
import { useMe } from "../me";
import { doing } from "../reduce";
import { useRun } from "../runs";
import type { AgentRow } from "../shapes";
import { attached } from "./files";
import { Problem } from "./small";

const LONGEST = 2_000;

export function Composer({ runs, open, agents, text, setText, say }: {
  runs: string[]; open: boolean; agents: AgentRow[]; text: string; setText: (change: (old: string) => string) => void;
  say: (message: string, agent: string | undefined, files: Medium[]) => Promise<void>;
}) {
  const [files, setFiles] = useState<Medium[]>([]);
  const [agent, setAgent] = useState<string | undefined>();
  const [problem, setProblem] = useState<string | null>(null);
  const [sending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const most = useMe()?.message_limit ?? LONGEST;
  // As the service counts: by characters, of which some are two units here.
  const length = [...text.trim()].length;
  const last = runs.at(-1);
  useEffect(() => {
    const field = box.current!;
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, 220)}px`;
  }, [text]);
  useEffect(() => {
    // On a phone this would bring up the keyboard over what one came to read.
    if (matchMedia("(hover: hover)").matches) box.current!.focus({ preventScroll: true });
  }, []);
  const attach = async (given: Iterable<File>): Promise<void> => {
    try {
      setProblem(null);
      const added = await attached(files, given);
      setFiles((now) => [...now, ...added]);
    } catch (error) {
      setProblem(explain(error));
    }
  };
  const submit = async (): Promise<void> => {
    const message = text.trim();
    if (!message || sending || length > most) return;
    setSending(true);
    setProblem(null);
    setText(() => "");
    setFiles([]);
    try {
      await say(message, agent, files);
    } catch (error) {
      setFiles(files);
      setProblem(explain(error));
      // Nothing written is lost, neither this nor what was begun since.
      setText((since) => (since ? `${message}\n${since}` : message));
    }
    setSending(false);
    box.current?.focus();
  };
  return (
    <form
      class="composer" onSubmit={(event) => { event.preventDefault(); void submit(); }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => { event.preventDefault(); void attach(event.dataTransfer?.files ?? []); }}
    >
      <Problem text={problem} />
      <Problem text={length > most ? `This is ${(length - most).toLocaleString()} characters too long; ${most.toLocaleString()} fit into a message. Nothing was cut: shorten it, or send it in parts.` : null} />
      {last ? <Now id={last} open={open} /> : <p class="now" role="status" />}
      {files.length ? (
        <ul class="attached" aria-label="Files to send">
          {files.map((file, at) => (
            <li key={at}>
              {file.name} <button type="button" class="quiet-button" onClick={() => setFiles(files.filter((other) => other !== file))}>Remove<span class="sr-only"> {file.name}</span></button>
            </li>
          ))}
        </ul>
      ) : null}
      <div class="row">
        <label class="attach" title="Add pictures and files; they can be pasted and dropped, too">
          <span aria-hidden="true">+</span><span class="sr-only">Add pictures and files</span>
          <input type="file" multiple onChange={(event) => { void attach([...event.currentTarget.files ?? []]); event.currentTarget.value = ""; }} />
        </label>
        <label for="message" class="sr-only">Message</label>
        <textarea
          id="message" ref={box} rows={1} value={text} placeholder="What should be done?"
          aria-describedby="composer-help" aria-invalid={length > most ? "true" : undefined}
          onInput={(event) => { const { value } = event.currentTarget; setText(() => value); }}
          onPaste={(event) => {
            const pasted = [...event.clipboardData?.files ?? []];
            if (!pasted.length) return;
            event.preventDefault();
            void attach(pasted);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              void submit();
            }
          }}
        />
        <button class="primary" type="submit" disabled={!length || sending || length > most}>Send</button>
      </div>
      <p class="help quiet" id="composer-help">
        {agents.length > 1 ? (
          <label>
            Agent{" "}
            <select value={agent ?? agents[0]!.name} onChange={(event) => setAgent(event.currentTarget.value)}>
              {agents.map(({ name }) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        ) : null}
        <span class="keys">Enter sends, Shift+Enter starts a new line</span>
        {length > most / 2 ? <span class="counter">{length.toLocaleString()} of {most.toLocaleString()} characters</span> : null}
      </p>
    </form>
  );
}

/** What goes on, for eyes and for screen readers, and the way to stop it. */
function Now({ id, open }: { id: string; open: boolean }) {
  const { run } = useRun(id);
  const { busy, problem, act } = useAction();
  const decides = useMe()?.can_decide ?? false;
  return (
    <>
      <div class="now">
        <span role="status">{doing(run, decides)}</span>
        {ended(run.status) || !(run.task || open) ? null : (
          <button type="button" class="small" disabled={busy} onClick={() => void act(() => send("POST", `/api/v1/runs/${id}/cancel`))}>
            Cancel
          </button>
        )}
      </div>
      <Problem text={problem} />
    </>
  );
}
