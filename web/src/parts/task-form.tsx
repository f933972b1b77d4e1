// What a task is made of, to be written and changed.

import { useState } from "preact/hooks";
import { useAction } from "../hooks";
import type { Priority, Task, TaskStatus } from "../shapes";
import { Problem } from "./small";

export const TASK_STATUS: Record<TaskStatus, { label: string; kind: string }> = {
  pending: { label: "Pending", kind: "plain" },
  in_progress: { label: "In progress", kind: "busy" },
  completed: { label: "Completed", kind: "good" },
};
/** How each is marked; the usual one is not. */
export const PRIORITY: Record<Priority, string | null> = { low: "plain", medium: null, high: "warn", critical: "bad" };

export interface TaskFields {
  title: string;
  description: string | null;
  status: TaskStatus;
  priority: Priority;
  eta: string | null;
  tags: string[];
}

/** A day as people write it; the time too, where one was given. */
export function due(eta: string): string {
  const [day = "", time = ""] = eta.split("T");
  return time.startsWith("00:00") ? day : `${day} ${time.slice(0, 5)}`;
}

export function TaskForm({ task, verb, save }: {
  task: Task | null; verb: string | null; save: (fields: TaskFields) => Promise<unknown>;
}) {
  const [title, setTitle] = useState(task?.title ?? "");
  const [description, setDescription] = useState(task?.description ?? "");
  const [status, setStatus] = useState<TaskStatus>(task?.status ?? "pending");
  const [priority, setPriority] = useState<Priority>(task?.priority ?? "medium");
  const [eta, setEta] = useState(task?.eta?.slice(0, 10) ?? "");
  const [tags, setTags] = useState(task?.tags.join(", ") ?? "");
  const [saved, setSaved] = useState("");
  const { busy, problem, act } = useAction();
  const submit = () => act(async () => {
    setSaved("");
    // A day that was not touched keeps its time and its zone.
    const kept = task?.eta && task.eta.slice(0, 10) === eta ? task.eta : eta || null;
    const words = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    await save({ title: title.trim(), description: description.trim() ? description : null, status, priority, eta: kept, tags: words });
    setSaved("Saved");
  });
  return (
    <form class="card task-form" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <fieldset disabled={verb === null}>
        <div class="field">
          <label for="task-title">Title</label>
          <input id="task-title" required maxLength={255} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="task-description">Description (Markdown)</label>
          <textarea id="task-description" rows={5} value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
        </div>
        <div class="fields">
          <label>Status{" "}
            <select value={status} onChange={(event) => setStatus(event.currentTarget.value as TaskStatus)}>
              {Object.entries(TASK_STATUS).map(([name, { label }]) => <option key={name} value={name}>{label}</option>)}
            </select>
          </label>
          <label>Priority{" "}
            <select value={priority} onChange={(event) => setPriority(event.currentTarget.value as Priority)}>
              {Object.keys(PRIORITY).map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
          <label>Due <input type="date" value={eta} onInput={(event) => setEta(event.currentTarget.value)} /></label>
          <label class="wide">Tags, with commas between <input value={tags} onInput={(event) => setTags(event.currentTarget.value)} /></label>
        </div>
        <Problem text={problem} />
        <div class="buttons">
          {verb ? <button class="primary" disabled={busy || !title.trim()}>{verb}</button> : null}
          <span role="status" class="quiet">{saved}</span>
        </div>
      </fieldset>
    </form>
  );
}
