// Marks that turn the direction of text make it read as something else than it is. Wherever text is drawn they are shown
// as escapes: here, at the one place that every element passes, so that no page can forget it.

import { options, type VNode } from "preact";

const MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
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
      if (typeof children === "string") props.children = shown(children);
      else if (Array.isArray(children)) props.children = children.map(shown);
      for (const name of TOLD) if (typeof props[name] === "string") props[name] = shown(props[name]);
    }
    before?.(vnode);
  };
}
