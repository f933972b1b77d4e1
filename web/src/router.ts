// Addresses within the page: everything after the '#', so that the service needs to know only '/'.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  page: string;
  id: string | null;
}

export function routeOf(hash: string): Route {
  const [page = "", id] = hash.replace(/^#?\/?/, "").split("/");
  return { page: page || "chat", id: id ? decoded(id) : null };
}

/** An address that somebody has mistyped is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const href = (page: string, id?: string | null): string => `#/${page}${id ? `/${encodeURIComponent(id)}` : ""}`;

export function go(page: string, id?: string | null, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, "", href(page, id));
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href(page, id);
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
