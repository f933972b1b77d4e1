// Who looks at the page, and what the service will let them do.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export interface Me {
  id: string;
  permissions: string[];
  can_decide: boolean;
  can_read_audit: boolean;
  can_change_tasks: boolean;
  can_change_memory: boolean;
  can_change_experiments: boolean;
  can_dismiss_gaps: boolean;
  message_limit: number;
}

/** Whether somebody holds a permission, itself or through a wildcard such as `orders:*`. */
export function may(me: Me | null, permission: string): boolean {
  if (!me) return false;
  const parts = permission.split(":");
  return ["*", permission, ...parts.map((_, at) => [...parts.slice(0, at), "*"].join(":"))].some((held) => me.permissions.includes(held));
}

/** Whether what belongs to somebody may be changed. */
export const changes = (me: Me | null, owner: string | null | undefined): boolean => me !== null && (owner === me.id || may(me, "runs:write"));

/** `null` until the service has said. */
export const MeContext = createContext<Me | null>(null);

export const useMe = (): Me | null => useContext(MeContext);
