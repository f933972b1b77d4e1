// Pictures and files, of messages and inside results. Only PNG, JPEG, GIF and WebP are drawn, and as data: what else
// there is, SVG and HTML above all, can be kept as a file and is never opened here.

import { useEffect, useState } from "preact/hooks";
import { explain, must, request } from "../api";
import type { Medium } from "../events";
import { useAction } from "../hooks";
import { Code, Problem } from "./small";

const KINDS = /^image\/(?:png|jpeg|gif|webp)$/;
const BYTES = /^[A-Za-z0-9+/=\s]+$/;
const MOST = 12;
const DEEPEST = 6;

/** As tools of other servers give them: {type: "image", data, mimeType}; or an address that holds the bytes. */
function sources(value: unknown, found: string[] = [], depth = 0): string[] {
  if (found.length >= MOST || depth > DEEPEST) return found;
  if (typeof value === "string" && /^data:image\/(?:png|jpeg|gif|webp);base64,/.test(value)) found.push(value);
  if (value === null || typeof value !== "object") return found;
  const { data, mimeType, mime_type: other } = value as Record<string, unknown>;
  const kind = mimeType ?? other;
  if (typeof data === "string" && typeof kind === "string" && KINDS.test(kind) && BYTES.test(data)) found.push(`data:${kind};base64,${data}`);
  else for (const item of Object.values(value)) sources(item, found, depth + 1);
  return found;
}

export function Pictures({ of }: { of: unknown }) {
  const found = sources(of);
  if (!found.length) return null;
  return <p class="pictures">{found.map((source, at) => <img key={at} src={source} alt={`Picture ${at + 1} of the result`} />)}</p>;
}

const artifactPath = (runId: string, artifact: string): string => `/api/v1/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(artifact)}`;

/** Its bytes, in base64, from where they are kept. */
export async function bytesOf(medium: Medium): Promise<string> {
  if (medium.data !== undefined) return medium.data;
  return (await must(await request(artifactPath(medium.run_id ?? "", medium.artifact ?? "")))).text();
}

function sizeOf(bytes: number): string {
  return bytes < 1_000 ? `${bytes} bytes` : bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function MediaList({ of }: { of: Medium[] }) {
  if (!of.length) return null;
  return <ul class="media" aria-label="Pictures and files">{of.map((medium, at) => <li key={medium.artifact ?? at}><OneMedium medium={medium} /></li>)}</ul>;
}

function OneMedium({ medium }: { medium: Medium }) {
  const drawn = KINDS.test(medium.mime_type);
  const name = medium.name || (drawn ? "picture" : "file");
  const [source, setSource] = useState<string | null>(null);
  const [missing, setMissing] = useState<string | null>(null);
  const { busy, problem, act } = useAction();
  useEffect(() => {
    if (!drawn) return;
    let here = true;
    bytesOf(medium).then(
      (data) => here && (BYTES.test(data) ? setSource(`data:${medium.mime_type};base64,${data}`) : setMissing("It cannot be shown.")),
      (error: unknown) => here && setMissing(explain(error)),
    );
    return () => void (here = false);
  }, [medium.artifact, medium.data]);
  const save = async (): Promise<void> => {
    const bytes = Uint8Array.from(atob(await bytesOf(medium)), (character) => character.charCodeAt(0));
    keep(new Blob([bytes], { type: "application/octet-stream" }), name);
  };
  return (
    <>
      {source ? <img src={source} alt={name} /> : null}
      {missing ? <span class="quiet">{missing}</span> : null}
      <button type="button" class="quiet-button" disabled={busy} onClick={() => void act(save)}>
        {name} <span class="quiet">({medium.mime_type}, {sizeOf(medium.bytes)})</span><span class="sr-only">: save it as a file</span>
      </button>
      <Problem text={problem} />
    </>
  );
}

function keep(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const MOST_FILES = 16;
const MOST_BYTES = 10_000_000;
const MOST_TOGETHER = 20_000_000;

/** Files that somebody has pasted, dropped or chosen, beside those before. Throws where they cannot be taken. */
export async function attached(before: Medium[], files: Iterable<File>): Promise<Medium[]> {
  const all = [...before];
  for (const file of files) {
    if (all.length >= MOST_FILES) throw new Error(`At most ${MOST_FILES} files fit into a message.`);
    if (file.size > MOST_BYTES) throw new Error(`${file.name} has ${sizeOf(file.size)}, and a file may have ${sizeOf(MOST_BYTES)}.`);
    if (!file.size) throw new Error(`${file.name} is empty, or a folder.`);
    const data = await dataOf(file);
    all.push({ mime_type: file.type || "application/octet-stream", bytes: file.size, name: file.name, data });
  }
  if (all.reduce((sum, { bytes }) => sum + bytes, 0) > MOST_TOGETHER) throw new Error(`At most ${sizeOf(MOST_TOGETHER)} fit into a message.`);
  return all.slice(before.length);
}

function dataOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** A result that is kept apart, on demand: to be read here, or kept as a file. */
export function Whole({ runId, artifact }: { runId: string; artifact: string }) {
  const [text, setText] = useState<string | null>(null);
  const { busy, problem, act } = useAction();
  const read = async (): Promise<string> => (await must(await request(artifactPath(runId, artifact)))).text();
  const save = async (): Promise<void> => keep(new Blob([await read()], { type: "text/plain" }), `${artifact}.txt`);
  return (
    <>
      {text === null ? (
        <div class="buttons">
          <button class="small" disabled={busy} onClick={() => void act(async () => setText(await read()))}>Read the whole result</button>
          <button class="small" disabled={busy} onClick={() => void act(save)}>Save it as a file</button>
        </div>
      ) : <Code label="The whole result" value={text} />}
      <Problem text={problem} />
    </>
  );
}
