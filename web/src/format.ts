// Numbers, times and data as people read them.

import { visible, write } from "./json";

export function duration(milliseconds: number | null): string {
  if (milliseconds === null || !Number.isFinite(milliseconds)) return "";
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function countdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** Today's times to the second, others by day. */
export function when(time: string): string {
  const date = new Date(time);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}

/** US dollars, with as many digits as say something. */
export function money(dollars: number | null): string {
  if (dollars === null) return "";
  return `$${dollars.toFixed(dollars === 0 || dollars >= 1 ? 2 : dollars >= 0.01 ? 3 : 5)}`;
}

export const percent = (share: number): string => `${(share * 100).toFixed(share === 1 || share === 0 ? 0 : 1)} %`;

/** A difference of two shares, in percentage points. */
export const points = (difference: number): string => `${difference < 0 ? "−" : "+"}${Math.abs(difference * 100).toFixed(0)}`;

export const pretty = (value: unknown): string => visible(typeof value === "string" ? value : write(value, 2));

/** Arguments on one line. */
export function brief(data: Record<string, unknown>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => visible(`${name}: ${write(value)}`))
    .join(", ");
}

export function plural(count: number, one: string): string {
  return `${count.toLocaleString()} ${one}${count === 1 ? "" : "s"}`;
}

export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `${prefix}_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
