// How many decisions wait, also while nobody looks at the page: in the tab's title, and in a notification if wanted.

import { useEffect, useRef } from "preact/hooks";
import { plural } from "../format";
import { useApi } from "../hooks";
import type { Approvals } from "../shapes";

const LOOK_MS = 3_000;
/** A hidden page asks more seldom; browsers would hold it back anyway. */
const HIDDEN_MS = 10_000;

export const canNotify = (): boolean => "Notification" in window && isSecureContext;

export const notifies = (): boolean =>
  canNotify() && Notification.permission === "granted" && localStorage.getItem("notify") === "on";

export function useWaiting(): number {
  const { data } = useApi<Approvals>("/api/v1/approvals?limit=50", LOOK_MS, HIDDEN_MS);
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (!data) return;
    const fresh = data.approvals.filter((approval) => known.current && !known.current.has(approval.id));
    known.current = new Set(data.approvals.map((approval) => approval.id));
    if (fresh.length && document.hidden && notifies()) notify(fresh.map((approval) => approval.tool_name), data.total);
  }, [data]);
  return data?.total ?? 0;
}

function notify(tools: string[], all: number): void {
  try {
    const shown = new Notification(`May ${tools.join(", ")} run?`, {
      body: `${plural(all, "decision")} of yours ${all === 1 ? "is" : "are"} waited for.`, tag: "journeyman-approvals",
    });
    shown.onclick = () => {
      focus();
      location.hash = "#/approvals";
      shown.close();
    };
  } catch {
    // Some browsers allow it to installed pages only; the title tells as well.
  }
}
