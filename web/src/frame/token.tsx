// The question for a token, where the service wants one.

import { useEffect, useRef, useState } from "preact/hooks";
import { onTokenNeeded, setToken } from "../api";
import { Problem } from "../parts/small";

export function TokenDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => onTokenNeeded((refused) => {
    setProblem(refused ? "The service does not know this token. Look whether it is complete, and try again." : null);
    if (!dialog.current!.open) dialog.current!.showModal();
  }), []);
  return (
    <dialog ref={dialog} aria-labelledby="token-title" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const field = event.currentTarget.elements.namedItem("token") as HTMLInputElement;
          const token = field.value.trim();
          // Nothing else can be sent, and no token has it.
          if (!/^[!-~]+$/.test(token)) return setProblem("A token has letters, digits and signs, and no spaces.");
          field.value = "";
          setProblem(null);
          dialog.current!.close();
          setToken(token);
        }}
      >
        <h2 id="token-title">Who are you?</h2>
        <p>
          This service answers only those with a token. Open the link that <code>journeyman serve</code> has printed, or
          write your token here. It is kept in this tab only.
        </p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" name="token" type="password" required autocomplete="off" aria-describedby="token-problem" />
        </div>
        <div id="token-problem"><Problem text={problem} /></div>
        <div class="buttons"><button class="primary">Go on</button></div>
      </form>
    </dialog>
  );
}
