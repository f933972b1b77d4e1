// Requests to the service: the token, errors of one shape, and the service's clock.

import { parse, visible, write } from "./json";

export interface Problem {
  error: string;
  code: string;
  recover_action?: string;
  status: number;
}

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.error);
  }
}

const TOKEN = "journeyman-token";
const SKEW_MS = 10_000;
let askForToken: (refused: boolean) => void = () => {};
/** While a token is asked for: when it has been given. */
let asked: { given: Promise<void>; give: () => void } | null = null;
let skew = 0;

/** Who is to be told when the service wants a token, and whether it has refused one. */
export function onTokenNeeded(ask: (refused: boolean) => void): void {
  askForToken = ask;
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
  asked?.give();
  asked = null;
}

/** The time by the service's clock, in milliseconds: deadlines are its own. */
export const now = (): number => Date.now() + skew;

/** Where a proxy shows the service: what stands before the last slash of the page's own address. */
const ROOT = location.pathname.replace(/\/[^/]*$/, "");

/** A request with the token; asks for one, and tries again, where the service wants it. */
export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await reached(fetch(ROOT + path, { ...options, headers, cache: "no-store" }));
  const ahead = Date.parse(response.headers.get("Date") ?? "") - Date.now();
  // The header counts whole seconds, and an answer may take a few: a small difference says nothing.
  if (!Number.isNaN(ahead)) skew = Math.abs(ahead) > SKEW_MS ? ahead : 0;
  if (response.status !== 401) return response;
  // Many requests are refused at once; the first asks for all of them.
  if (!asked && sessionStorage.getItem(TOKEN) === token) {
    sessionStorage.removeItem(TOKEN);
    let give = (): void => {};
    asked = { given: new Promise((resolve) => (give = resolve)), give };
    askForToken(token !== null);
  }
  await asked?.given;
  return request(path, options);
}

export const REACHED = "service-reached";
let away = false;

/** Tells everybody whose question found no answer when the service is there again. */
async function reached(asked: Promise<Response>): Promise<Response> {
  try {
    const response = await asked;
    if (away && response.status < 500) {
      away = false;
      dispatchEvent(new Event(REACHED));
    }
    return response;
  } catch (error) {
    if (error instanceof TypeError) away = true;
    throw error;
  }
}

/** Which of several people at one browser asks; the token itself stays here. */
export function identity(): string {
  let hash = 0x811c9dc5;
  for (const unit of sessionStorage.getItem(TOKEN) ?? "") hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193);
  return `${ROOT}:${(hash >>> 0).toString(16)}`;
}

export async function must(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = await json<Partial<Problem>>(response).catch(() => null);
  throw new ApiError({
    error: body?.error ?? `the service answered ${response.status}`,
    code: body?.code ?? "HTTP_ERROR",
    recover_action: body?.recover_action,
    status: response.status,
  });
}

const json = async <T>(response: Response): Promise<T> => parse<T>(await response.text());

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return json(await must(await request(path, { headers: { Accept: "application/json" }, signal })));
}

export async function send<T>(
  method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown, headers: Record<string, string> = {},
): Promise<T> {
  const response = await must(
    await request(path, {
      method,
      headers: { Accept: "application/json", "Content-Type": "application/json", ...headers },
      body: body === undefined ? undefined : write(body),
    }),
  );
  return response.status === 204 ? (undefined as T) : json(response);
}

/** What went wrong, and what to do about it. */
export function explain(error: unknown): string {
  if (error instanceof ApiError) {
    const advice = error.problem.recover_action;
    return visible(advice ? `${error.problem.error}. ${advice}.` : `${error.problem.error}.`);
  }
  if (error instanceof TypeError) return "The service cannot be reached. Is it still running?";
  return String(error instanceof Error ? error.message : error);
}
