// The pages and their order in the menu. Another page is another line here: its name is its address after '#/'.

import type { ComponentType } from "preact";
import { ApprovalsPage } from "./approvals";
import { AuditPage } from "./audit";
import { ChatPage } from "./chat";
import { ExperimentsPage } from "./experiments";
import { MemoryPage } from "./memory";
import { GapsPage } from "./gaps";
import { PlaybooksPage } from "./playbooks";
import { RunsPage } from "./runs";
import { ServicePage } from "./service";
import { TasksPage } from "./tasks";
import { ToolsPage } from "./tools";

export interface PageEntry {
  name: string;
  title: string;
  /** The path of a 24 × 24 icon. */
  icon: string;
  page: ComponentType<{ id: string | null }>;
}

export const PAGES: PageEntry[] = [
  { name: "chat", title: "Chat", icon: "M4 5h16v11H9l-5 4z", page: ChatPage },
  { name: "runs", title: "Runs", icon: "M4 6h10M4 12h16M4 18h7M18 4v4M8 16v4", page: RunsPage },
  { name: "approvals", title: "Approvals", icon: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM8.5 12l2.5 2.5 4.5-5", page: ApprovalsPage },
  { name: "tasks", title: "Tasks", icon: "M4 6l1.500 1.500L8 5M4 12l1.500 1.500L8 11M4 18l1.500 1.500L8 17M11 6h9M11 12h9M11 18h9", page: TasksPage },
  { name: "tools", title: "Tools", icon: "M14 6a4 4 0 0 1 5-2l-2.500 2.500 1 2 2 1L22 7a4 4 0 0 1-6 4.500L7.500 20a2 2 0 0 1-3-3L13 9a4 4 0 0 1 1-3z", page: ToolsPage },
  { name: "memory", title: "Memory", icon: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6", page: MemoryPage },
  { name: "playbooks", title: "Playbooks", icon: "M12 6c-2-2-5-2-8-2v14c3 0 6 0 8 2 2-2 5-2 8-2V4c-3 0-6 0-8 2zM12 6v14", page: PlaybooksPage },
  { name: "experiments", title: "Experiments", icon: "M9 3h6M10 3v6l-5 9a2 2 0 0 0 2 3h10a2 2 0 0 0 2-3l-5-9V3M7.500 15h9", page: ExperimentsPage },
  { name: "gaps", title: "Gaps", icon: "M12 4a8 8 0 1 0 .01 0M12 8v5M12 16v.5", page: GapsPage },
  { name: "audit", title: "Audit", icon: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3", page: AuditPage },
  { name: "configuration", title: "Configuration", icon: "M12 9a3 3 0 1 0 .01 0M12 3v3M12 18v3M3 12h3M18 12h3M5.600 5.600l2 2M16.400 16.400l2 2M5.600 18.400l2-2M16.400 7.600l2-2", page: ServicePage },
];
