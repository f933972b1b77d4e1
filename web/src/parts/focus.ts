// Where the focus goes when what had it goes away, so that nobody who uses a keyboard begins again at the top.

import { useEffect, useLayoutEffect, useRef, type MutableRef } from "preact/hooks";

/**
 * For a card that disappears once it is decided. `decided()` says that its own buttons did it: then the focus goes to
 * the next decision, else to the call that it was about, else to the page's heading.
 */
export function useLeaving(): { card: MutableRef<HTMLElement | null>; decided: () => void } {
  const card = useRef<HTMLElement>(null);
  const call = useRef<Element | null>(null);
  const here = useRef(false);
  useEffect(() => () => {
    if (here.current) setTimeout(() => land(call.current));
  }, []);
  return {
    card,
    decided: () => {
      here.current = true;
      call.current = card.current?.closest(".call")?.querySelector("summary") ?? null;
    },
  };
}

function land(call: Element | null): void {
  // Who has gone elsewhere meanwhile stays there.
  if (document.activeElement && document.activeElement !== document.body) return;
  const next = document.querySelector<HTMLElement>("[data-decision]");
  const place = next ?? (call?.isConnected ? (call as HTMLElement) : document.querySelector<HTMLElement>("main h1"));
  place?.focus({ preventScroll: place !== next });
}

/** Moves the focus into a part of a card when it takes another's place there, and not when the card is first shown. */
export function useFocusOn(card: MutableRef<HTMLElement | null>, what: unknown): void {
  const first = useRef(true);
  useLayoutEffect(() => {
    if (first.current) return void (first.current = false);
    card.current?.querySelector<HTMLElement>("textarea, input:not([type=checkbox]), button")?.focus();
  }, [what]);
}
