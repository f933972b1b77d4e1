// Who one is, and what one chooses for oneself. It is kept in this browser.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useMe } from "../me";
import { keysOn } from "./keys";
import { canNotify, notifies } from "./waiting";

const THEMES = { auto: "As the system", light: "Light", dark: "Dark" } as const;
export const KEYS: [string, string][] = [
  ["/", "search everything"], ["n", "new conversation"], ["m", "write a message"], ["d", "next decision"], ["r", "runs"], ["a", "approvals"],
  ["↑ ↓", "through a list"], ["Enter", "open"],
];

export function Settings() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  const [keys, setKeys] = useState(keysOn);
  const [open, setOpen] = useState(false);
  const me = useMe();
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  useEffect(() => localStorage.setItem("keys", keys ? "on" : "off"), [keys]);
  return (
    <div class="settings">
      <span class="who">{me ? <>You are <strong>{me.id}</strong></> : null}</span>
      <button class="quiet-button" onClick={() => setOpen(true)}>Settings</button>
      {open ? (
        <SettingsDialog close={() => setOpen(false)}>
          <fieldset class="choices">
            <legend>Colours</legend>
            {Object.entries(THEMES).map(([name, label]) => (
              <label key={name} class={theme === name ? "choice chosen" : "choice"}>
                <input type="radio" name="theme" value={name} checked={theme === name} onChange={() => setTheme(name)} /> {label}
              </label>
            ))}
          </fieldset>
          {canNotify() ? <Notify /> : null}
          <label class="check"><input type="checkbox" checked={keys} onChange={(event) => setKeys(event.currentTarget.checked)} /> Single keys work</label>
          <dl class="keys-list">
            {KEYS.map(([key, told]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{told}</dd></div>)}
          </dl>
          {me ? <p class="quiet">You are <strong>{me.id}</strong>, and may {me.permissions.includes("*") ? "do everything" : me.permissions.join(", ") || "use what is yours"}.</p> : null}
        </SettingsDialog>
      ) : null}
    </div>
  );
}

function SettingsDialog({ close, children }: { close: () => void; children: preact.ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    return () => void setTimeout(() => before instanceof HTMLElement && before.isConnected && before.focus({ preventScroll: true }));
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="settings-title" onCancel={(event) => { event.preventDefault(); close(); }}>
      <h2 id="settings-title">Settings</h2>
      {children}
      <div class="buttons"><button class="primary" onClick={close}>Close</button></div>
    </dialog>
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
