// Tasks: all of them, filtered and searched, a new one, and one of them with what is attached to it.

import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api";
import { plural } from "../format";
import { useAction, useApi } from "../hooks";
import { Markdown } from "../markdown";
import { useMe } from "../me";
import { Attachments } from "../parts/attachments";
import { Badge, Confirm, Empty, Problem } from "../parts/small";
import { PRIORITY, TASK_STATUS, TaskForm, due, type TaskFields } from "../parts/task-form";
import { go, href } from "../router";
import type { Task, Tasks } from "../shapes";

const PAGE = 30;

export function TasksPage({ id }: { id: string | null }) {
  if (id === "new") return <NewTask />;
  return id ? <OneTask key={id} id={id} /> : <AllTasks />;
}

function AllTasks() {
  const [filter, setFilter] = useState({ status: "", priority: "", tags: "", sort: "created_desc" });
  const [text, setText] = useState("");
  const [page, setPage] = useState(0);
  const change = (name: keyof typeof filter) => (event: { currentTarget: { value: string } }) => {
    setFilter({ ...filter, [name]: event.currentTarget.value });
    setPage(0);
  };
  const may = useMe()?.can_change_tasks ?? false;
  const { data, problem, reload } = useApi<Tasks>(pathOf(filter, text.trim(), page), 4_000);
  const filtered = text.trim() || filter.status || filter.priority || filter.tags;
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Tasks</h1>
        {may ? <a class="button primary" href={href("tasks", "new")}>New task</a> : null}
      </div>
      <div class="filters" role="search">
        <input type="search" aria-label="Search tasks" placeholder="Search…" maxLength={200} value={text} onInput={(event) => { setText(event.currentTarget.value); setPage(0); }} />
        <label>Status{" "}
          <select value={filter.status} onChange={change("status")}>
            <option value="">all</option>
            {Object.entries(TASK_STATUS).map(([name, { label }]) => <option key={name} value={name}>{label.toLowerCase()}</option>)}
          </select>
        </label>
        <label>Priority{" "}
          <select value={filter.priority} onChange={change("priority")}>
            <option value="">all</option>
            {Object.keys(PRIORITY).map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
        <label>Tag <input value={filter.tags} size={6} maxLength={100} onInput={change("tags")} /></label>
        <label>Order{" "}
          <select value={filter.sort} onChange={change("sort")}>
            <option value="created_desc">newest</option>
            <option value="eta_asc">due soonest</option>
            <option value="priority_desc">most urgent</option>
          </select>
        </label>
      </div>
      <Problem text={problem} />
      {data && !data.tasks.length ? <Empty title={filtered ? "No task fits" : "No tasks yet"}>{filtered ? "Ask for less." : "Write one here, or ask the assistant to."}</Empty> : null}
      <ul class="list">{data?.tasks.map((task) => <li key={task.id}><TaskLine task={task} changed={reload} /></li>)}</ul>
      {data && data.total > PAGE ? (
        <div class="buttons">
          <button disabled={!page} onClick={() => setPage(page - 1)}>Back</button>
          <button disabled={(page + 1) * PAGE >= data.total} onClick={() => setPage(page + 1)}>Next</button>
          <span class="quiet">{plural(data.total, "task")}</span>
        </div>
      ) : null}
    </>
  );
}

function pathOf(filter: { status: string; priority: string; tags: string; sort: string }, text: string, page: number): string {
  const query = new URLSearchParams({ limit: String(PAGE), offset: String(page * PAGE), sort: filter.sort });
  if (filter.status) query.set("status", filter.status);
  if (filter.priority) query.set("priority", filter.priority);
  if (filter.tags.trim()) query.set("tags", filter.tags.trim());
  if (text) query.set("q", text);
  return `/api/v1/tasks?${query}`;
}

function TaskLine({ task, changed }: { task: Task; changed: () => void }) {
  const { busy, problem, act } = useAction();
  const may = useMe()?.can_change_tasks ?? false;
  const done = task.status === "completed";
  const set = () => act(async () => {
    await send("PATCH", `/api/v1/tasks/${task.id}`, { status: done ? "pending" : "completed" });
    changed();
  });
  return (
    <div class="task-line">
      <input type="checkbox" checked={done} disabled={busy || !may} aria-label={`Done: ${task.title}`} onChange={() => void set()} />
      <a class="line" href={href("tasks", task.id)}>
        <span class={`what${done ? " done" : ""}`}>{task.title}</span>
        {task.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}
        {task.attachments.length ? <span class="quiet">{plural(task.attachments.length, "attachment")}</span> : null}
        {task.eta ? <span class="quiet time">due {due(task.eta)}</span> : null}
        {PRIORITY[task.priority] && !done ? <Badge kind={PRIORITY[task.priority]!}>{task.priority}</Badge> : null}
        <Badge kind={TASK_STATUS[task.status].kind}>{TASK_STATUS[task.status].label}</Badge>
      </a>
      <Problem text={problem} />
    </div>
  );
}

function NewTask() {
  const save = async (fields: TaskFields): Promise<void> => {
    const made = await send<Task>("POST", "/api/v1/tasks", fields);
    go("tasks", made.id);
  };
  return (
    <>
      <p class="back"><a href={href("tasks")}>← All tasks</a></p>
      <h1 tabIndex={-1}>New task</h1>
      <TaskForm task={null} verb="Create" save={save} />
      <p class="quiet">Web addresses in the title and the description become attachments by themselves.</p>
    </>
  );
}

function OneTask({ id }: { id: string }) {
  const path = `/api/v1/tasks/${encodeURIComponent(id)}`;
  const [task, setTask] = useState<Task | null>(null);
  const [deleting, setDeleting] = useState(false);
  const [editing, setEditing] = useState(false);
  const { data, problem, missing, reload } = useApi<Task>(path);
  const { busy, problem: failed, act } = useAction();
  const may = useMe()?.can_change_tasks ?? false;
  useEffect(() => {
    if (data) setTask(data);
  }, [data]);
  if (!task || missing) {
    return (
      <>
        <p class="back"><a href={href("tasks")}>← All tasks</a></p>
        <h1 tabIndex={-1}>Task</h1>
        {missing ? <Empty title="There is no such task"><p><code>{id}</code> was deleted, or never made.</p></Empty> : <Problem text={problem} />}
      </>
    );
  }
  const change = (fields: Partial<TaskFields>) => send<Task>("PATCH", path, fields).then(setTask);
  const done = task.status === "completed";
  return (
    <>
      <p class="back"><a href={href("tasks")}>← All tasks</a></p>
      <div class="title">
        <h1 tabIndex={-1}>{task.title}</h1>
        <Badge kind={TASK_STATUS[task.status].kind}>{TASK_STATUS[task.status].label}</Badge>
      </div>
      <Problem text={problem ?? failed} />
      {may ? <div class="buttons">
        <button class={done ? "" : "primary"} disabled={busy} onClick={() => void act(() => change({ status: done ? "pending" : "completed" }))}>{done ? "Open it again" : "Complete"}</button>
        <button aria-expanded={editing} onClick={() => setEditing(!editing)}>{editing ? "Stop editing" : "Edit"}</button>
        <button class="danger" onClick={() => setDeleting(true)}>Delete…</button>
      </div> : <p class="note">You may look, and change nothing: that needs the permission <code>tasks:write</code>.</p>}
      {editing && may ? <TaskForm key={task.updated_at} task={task} verb="Save" save={async (fields) => { await change(fields); setEditing(false); }} /> : <Reading task={task} />}
      <h2>Attachments</h2>
      <Attachments task={task} may={may} changed={() => get<Task>(path).then(setTask, reload)} />
      {deleting ? (
        <Confirm title="Delete this task?" verb="Delete" no={() => setDeleting(false)} yes={async () => { await send("DELETE", path); go("tasks"); }}>
          <p>“{task.title}” and what is attached to it are gone for good.</p>
        </Confirm>
      ) : null}
    </>
  );
}

/** What the task says, to be read. */
function Reading({ task }: { task: Task }) {
  return (
    <section class="card" aria-label="Task">
      {task.description ? <Markdown text={task.description} /> : <p class="quiet">It has no description.</p>}
      <p class="quiet facts">
        <span>priority {task.priority}</span>
        {task.eta ? <span>due {due(task.eta)}</span> : null}
        {task.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}
      </p>
    </section>
  );
}
