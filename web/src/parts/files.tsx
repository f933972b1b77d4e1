// Pictures and files inside results. A picture is drawn only where its bytes are in the result itself: nothing is loaded.

import { useState } from "preact/hooks";
import { must, request } from "../api";
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

/** A result that is kept apart, on demand: to be read here, or kept as a file. */
export function Whole({ runId, artifact }: { runId: string; artifact: string }) {
  const [text, setText] = useState<string | null>(null);
  const { busy, problem, act } = useAction();
  const read = async (): Promise<string> => (await must(await request(`/api/v1/runs/${runId}/artifacts/${encodeURIComponent(artifact)}`))).text();
  const save = async (): Promise<void> => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await read()], { type: "text/plain" }));
    link.download = `${artifact}.txt`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
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
