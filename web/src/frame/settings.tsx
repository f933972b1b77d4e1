// What one chooses for oneself. It is kept in this browser.

import { useEffect, useState } from "preact/hooks";
import { useMe } from "../me";
import { keysOn } from "./keys";
import { canNotify, notifies } from "./waiting";

const THEMES = ["auto", "light", "dark"] as const;

export function Settings() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  const [keys, setKeys] = useState(keysOn);
  const me = useMe();
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  useEffect(() => localStorage.setItem("keys", keys ? "on" : "off"), [keys]);
  return (
    <div class="settings">
      {me ? <span class="who">You are <strong>{me.id}</strong></span> : null}
      <label>Theme{" "}
        <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
          {THEMES.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      {canNotify() ? <Notify /> : null}
      <details>
        <summary>Keys</summary>
        <label class="check"><input type="checkbox" checked={keys} onChange={(event) => setKeys(event.currentTarget.checked)} /> Single keys work</label>
        <dl class="keys-list">
          <div><dt><kbd>/</kbd></dt><dd>write</dd></div>
          <div><dt><kbd>n</kbd></dt><dd>new conversation</dd></div>
          <div><dt><kbd>d</kbd></dt><dd>next decision</dd></div>
        </dl>
      </details>
    </div>
  );
}

/** The browser is asked for its permission when the box is ticked, and never before. */
function Notify() {
  const [on, setOn] = useState(notifies);
  const [blocked, setBlocked] = useState(false);
  const change = async (wanted: boolean): Promise<void> => {
    const allowed = wanted && (await Notification.requestPermission()) === "granted";
    localStorage.setItem("notify", allowed ? "on" : "off");
    setOn(allowed);
    setBlocked(wanted && !allowed);
  };
  return (
    <>
      <label class="check">
        <input type="checkbox" checked={on} onChange={(event) => void change(event.currentTarget.checked)} />
        <span>Notify me of approvals</span>
      </label>
      {blocked ? <p role="status">Your browser does not allow it. Its settings for this page can.</p> : null}
    </>
  );
}
