// Requests to the service: the token, errors of one shape, and the service's clock.

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
let askForToken: () => void = () => {};
let tokenGiven: Promise<void> = Promise.resolve();
let giveToken: () => void = () => {};
let skew = 0;

/** Who is to be told when the service wants a token. */
export function onTokenNeeded(ask: () => void): void {
  askForToken = ask;
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
  giveToken();
  giveToken = () => {};
}

/** The time by the service's clock, in milliseconds: deadlines are its own. */
export const now = (): number => Date.now() + skew;

/** A request with the token; asks for one, and tries again, where the service wants it. */
export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  const ahead = Date.parse(response.headers.get("Date") ?? "") - Date.now();
  // The header counts whole seconds, and an answer may take a few: a small difference says nothing.
  if (!Number.isNaN(ahead)) skew = Math.abs(ahead) > SKEW_MS ? ahead : 0;
  if (response.status !== 401) return response;
  if (sessionStorage.getItem(TOKEN) === token) {
    sessionStorage.removeItem(TOKEN);
    tokenGiven = new Promise((resolve) => (giveToken = resolve));
    askForToken();
  }
  await tokenGiven;
  return request(path, options);
}

export async function must(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new ApiError({
    error: body?.error ?? `the service answered ${response.status}`,
    code: body?.code ?? "HTTP_ERROR",
    recover_action: body?.recover_action,
    status: response.status,
  });
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await must(await request(path, { headers: { Accept: "application/json" }, signal }))).json();
}

export async function send<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const response = await must(
    await request(path, {
      method,
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    }),
  );
  return response.status === 204 ? (undefined as T) : response.json();
}

/** What went wrong, and what to do about it. */
export function explain(error: unknown): string {
  if (error instanceof ApiError) {
    const advice = error.problem.recover_action;
    return advice ? `${error.problem.error}. ${advice}.` : `${error.problem.error}.`;
  }
  if (error instanceof TypeError) return "The service cannot be reached. Is it still running?";
  return String(error instanceof Error ? error.message : error);
}
