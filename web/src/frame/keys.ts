// Single keys, unless one is writing, or has turned them off.

import { useEffect } from "preact/hooks";
import { go } from "../router";

export const keysOn = (): boolean => localStorage.getItem("keys") !== "off";

export function useKeys(search: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
      if (!keysOn()) return;
      if (event.key === "/") {
        search();
      } else if (event.key === "m") {
        const box = document.getElementById("message");
        if (box) box.focus();
        else go("chat");
      } else if (event.key === "n") {
        go("chat");
      } else if (event.key === "r") {
        go("runs");
      } else if (event.key === "a") {
        go("approvals");
      } else if (event.key === "d") {
        nextDecision();
      } else {
        return;
      }
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function nextDecision(): void {
  const all = [...document.querySelectorAll<HTMLElement>("[data-decision]")];
  if (!all.length) return go("approvals");
  const at = all.findIndex((card) => card.contains(document.activeElement));
  const next = all[(at + 1) % all.length]!;
  next.focus();
  next.scrollIntoView({ block: "center" });
}
