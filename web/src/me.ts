// Who looks at the page, and what the service will let them do.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export interface Me {
  id: string;
  can_decide: boolean;
  can_read_audit: boolean;
  can_change_tasks: boolean;
  can_change_memory: boolean;
  can_change_experiments: boolean;
  can_dismiss_gaps: boolean;
  message_limit: number;
}

/** `null` until the service has said. */
export const MeContext = createContext<Me | null>(null);

export const useMe = (): Me | null => useContext(MeContext);
