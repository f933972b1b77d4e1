// Arguments as fields, drawn from a tool's schema, beside the same as JSON. The JSON is what counts: a field changes its
// part of it, and whatever is written there shows in the fields.

import { Exact, parse, visible, write } from "../json";
import type { Data } from "../events";
import { JsonField, type JsonState } from "./small";

export interface Schema {
  properties?: Record<string, Data>;
  required?: string[];
}

export function ArgumentsForm({ id, label, field, schema }: { id: string; label: string; field: JsonState; schema: Schema | null }) {
  const values = objectOf(field.text);
  const properties = Object.entries(schema?.properties ?? {});
  const set = (name: string, value: unknown): void => {
    const changed = { ...values, [name]: value };
    if (value === undefined) delete changed[name];
    field.setText(visible(write(changed, 2)));
  };
  return (
    <div class={properties.length ? "two-views" : ""}>
      <JsonField id={id} label={label} field={field} />
      {properties.length ? (
        <fieldset class="schema-fields" disabled={values === null}>
          <legend>Fields</legend>
          {values === null ? <p class="quiet">The JSON cannot be read just now.</p> : null}
          {properties.map(([name, property]) => (
            <One key={name} id={`${id}-${name}`} name={name} schema={property} required={schema?.required?.includes(name) ?? false} value={values?.[name]} set={(value) => set(name, value)} />
          ))}
        </fieldset>
      ) : null}
    </div>
  );
}

function objectOf(text: string): Data | null {
  try {
    const value = parse<unknown>(text, { all: true });
    return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Exact) ? (value as Data) : null;
  } catch {
    return null;
  }
}

function One({ id, name, schema, required, value, set }: {
  id: string; name: string; schema: Data; required: boolean; value: unknown; set: (value: unknown) => void;
}) {
  const kind = kindOf(schema);
  const help = typeof schema.description === "string" ? schema.description : "";
  const about = help ? { "aria-describedby": `${id}-help` } : {};
  const empty = (text: string): boolean => !text && !required;
  let control;
  if (Array.isArray(schema.enum)) {
    control = (
      <select id={id} {...about} value={value === undefined ? "" : write(value)} onChange={(event) => set(event.currentTarget.value ? parse(event.currentTarget.value) : undefined)}>
        <option value="">–</option>
        {schema.enum.map((item) => <option key={write(item)} value={write(item)}>{typeof item === "string" ? item : write(item)}</option>)}
      </select>
    );
  } else if (kind === "boolean") {
    control = <input id={id} {...about} type="checkbox" checked={value === true} onChange={(event) => set(event.currentTarget.checked)} />;
  } else if (kind === "number" || kind === "integer") {
    control = (
      <input id={id} {...about} inputMode="decimal" value={value === undefined ? "" : write(value)}
        onChange={(event) => set(numberOf(event.currentTarget.value, empty(event.currentTarget.value)))} />
    );
  } else if (kind === "string" && (value === undefined || typeof value === "string")) {
    const rows = Math.min(6, Math.max(1, Math.ceil((value?.length ?? 0) / 48), (value ?? "").split("\n").length));
    control = (
      <textarea id={id} {...about} rows={rows} value={visible(value ?? "")}
        onInput={(event) => set(empty(event.currentTarget.value) ? undefined : unescaped(event.currentTarget.value, value ?? ""))} />
    );
  } else {
    control = <code class="quiet">{value === undefined ? "not given" : visible(write(value))} – in the JSON</code>;
  }
  return (
    <div class={`field ${kind === "boolean" ? "check" : ""}`}>
      <label for={id}><code>{name}</code>{required ? <span class="quiet"> required</span> : null}</label>
      {control}
      {help ? <span class="quiet help-text" id={`${id}-help`}>{help}</span> : null}
    </div>
  );
}

/** What was there in an invisible form, and is shown as an escape, is meant as it was. */
function unescaped(written: string, before: string): string {
  return visible(before) === before ? written : written.replace(/\\u([\da-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function numberOf(text: string, empty: boolean): unknown {
  if (empty) return undefined;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text.trim()) ? new Exact(text.trim()) : text;
}

/** Of a value that may also be null, what it is otherwise. */
function kindOf(schema: Data): string {
  if (typeof schema.type === "string") return schema.type;
  const choices = (Array.isArray(schema.type) ? schema.type.map((type) => ({ type })) : (schema.anyOf as Data[] | undefined)) ?? [];
  const kinds = [...new Set(choices.map((choice) => String(choice.type)))].filter((kind) => kind !== "null");
  return kinds.length === 1 ? kinds[0]! : "any";
}
