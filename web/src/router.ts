// Addresses within the page: everything after the '#', so that the service needs to know only '/'.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  page: string;
  id: string | null;
  /** What a list is narrowed down to. */
  query: URLSearchParams;
}

export function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [page = "", id] = path.split("/");
  return { page: page || "chat", id: id ? decoded(id) : null, query: new URLSearchParams(query) };
}

/** An address that somebody has mistyped is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What is empty is left out of the query. */
export function href(page: string, id?: string | null, query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ""}${asked.size ? `?${asked}` : ""}`;
}

export function go(page: string, id?: string | null, { replace = false, query = {} }: { replace?: boolean; query?: Record<string, string> } = {}): void {
  if (replace) {
    history.replaceState(null, "", href(page, id, query));
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href(page, id, query);
  }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(hash);
}
