// Marks that turn the direction of text make it read as something else than it is. Wherever text is drawn they are shown
// as escapes: here, at the one place that every element passes, so that no page can forget it. Text in a script that is
// written from the right begins at the right, and turns nothing around it.

import { options, type VNode } from "preact";

const MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const TOLD = ["title", "aria-label", "placeholder"] as const;

export const plain = (text: string): string =>
  text.replace(MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

const shown = (child: unknown): unknown => (typeof child === "string" && child.search(MARKS) >= 0 ? plain(child) : child);

export function escapeDirections(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    if (typeof vnode.type === "string") {
      const props = vnode.props as Record<string, unknown>;
      const { children } = props;
      const texts = Array.isArray(children) ? children : [children];
      if (vnode.type === "textarea" || vnode.type === "input" || texts.some((text) => typeof text === "string" && FROM_THE_RIGHT.test(text))) props.dir ??= "auto";
      if (typeof children === "string") props.children = shown(children);
      else if (Array.isArray(children)) props.children = children.map(shown);
      for (const name of TOLD) if (typeof props[name] === "string") props[name] = shown(props[name]);
    }
    before?.(vnode);
  };
}
