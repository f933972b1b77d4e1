// Was it right? A person's word on an ended run, which is learned from.

import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api";
import { useAction } from "../hooks";
import { useMe } from "../me";
import type { Label } from "../shapes";
import { Problem } from "./small";

type Rating = "good" | "bad";
/** What was said in this tab: a run that is shown again still knows. */
const given = new Map<string, Rating>();

const THUMB = "M7 11v9H4v-9zM7 11l4-7c2 0 3 1 2.500 3L13 10h6c1 0 2 1 1.700 2l-1.700 6.500c-.3 1-1 1.500-2 1.500H7";

/** `look` asks the service what was said before; in a long conversation that would be a request for each answer. */
export function RatingButtons({ runId, look = false }: { runId: string; look?: boolean }) {
  const [rating, setRating] = useState<Rating | null>(given.get(runId) ?? null);
  const { busy, problem, act } = useAction();
  const me = useMe();
  useEffect(() => {
    if (!look || !me || given.has(runId)) return;
    void get<{ labels: Label[] }>(`/api/v1/runs/${runId}/labels`).then(({ labels }) => {
      const own = labels.find((label) => label.source === "rating" && label.by === me.id);
      if (own) setRating(own.value);
    }, () => {});
  }, [runId, look, me?.id]);
  const rate = (value: Rating) =>
    act(async () => {
      await send("POST", `/api/v1/runs/${runId}/rating`, { rating: value });
      given.set(runId, value);
      setRating(value);
    });
  const button = (value: Rating, label: string) => (
    <button
      class="quiet-button thumb" aria-label={label} title={label} aria-pressed={rating === value} disabled={busy}
      onClick={() => void rate(value)}
    ><svg viewBox="0 0 24 24" aria-hidden="true"><path d={THUMB} transform={value === "bad" ? "rotate(180 12 12)" : undefined} /></svg></button>
  );
  return (
    <>
      <span class="rating" role="group" aria-label="Was this right?">
        {button("good", "This was right")}
        {button("bad", "This was wrong")}
        <span class="sr-only" role="status">{rating ? `Rated ${rating}` : ""}</span>
      </span>
      <Problem text={problem} />
    </>
  );
}
