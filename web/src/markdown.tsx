// A model's text as Markdown. What a model writes is not trusted, so no HTML is ever made of it: the parser's tokens
// become elements of the kinds below and text, nothing else. Nothing is loaded, and links lead away in a new tab.
// While a text grows only its end is redrawn, so that what one has selected in it stays selected.

import { Marked, type Token, type Tokens } from "marked";
import { h, type ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

const marked = new Marked({ gfm: true, breaks: true });

/** Characters that are read and drawn together; a longer text is drawn part by part, as one comes to read it. */
const PART = 12_000;
const AT_FIRST = 2;

export function Markdown({ text }: { text: string }) {
  const [shown, setShown] = useState(AT_FIRST);
  const { parts, left } = useMemo(() => partsOf(text, shown), [text, shown]);
  if (parts.length === 1 && !left) return <div class="markdown"><Part text={text} /></div>;
  return (
    <div class="markdown">
      {parts.map((part, at) => <div key={at} class="part"><Part text={part} /></div>)}
      {left ? <More left={left} show={() => setShown((n) => n + AT_FIRST)} /> : null}
    </div>
  );
}

function Part({ text }: { text: string }) {
  const tokens = useMemo(() => marked.lexer(text), [text]);
  return <>{all(tokens)}</>;
}

/** Draws on when it comes near what is seen. */
function More({ left, show }: { left: number; show: () => void }) {
  const here = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const near = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && show(), { rootMargin: "400px" });
    near.observe(here.current!);
    return () => near.disconnect();
  });
  return <button ref={here} class="small more-text" onClick={show}>Show more ({left.toLocaleString()} characters)</button>;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/gm;

/**
 * The first parts of a text, which end between its blocks, and how much is left; a block of code that is longer than a
 * part is closed and opened again. What is not shown is not looked at: a text of megabytes grows many times a second.
 */
function partsOf(text: string, most: number): { parts: string[]; left: number } {
  if (text.length <= PART) return { parts: [text], left: 0 };
  const parts: string[] = [];
  let from = 0;
  for (let open = ""; from < text.length && parts.length < most; ) {
    let to = from + PART;
    if (to < text.length) {
      const gap = text.lastIndexOf("\n\n", to);
      const line = text.lastIndexOf("\n", to);
      if (gap > from + PART / 4) to = gap + 2;
      else if (line > from + PART / 4) to = line + 1;
    }
    const part = text.slice(from, to);
    const before = open;
    for (const [, fence] of part.matchAll(FENCE)) open = open ? (fence!.startsWith(open) ? "" : open) : fence!;
    parts.push(`${before ? `${before}\n` : ""}${part}${open ? `\n${open}` : ""}`);
    from = to;
  }
  return { parts, left: Math.max(0, text.length - from) };
}

const all = (tokens: Token[] | undefined): ComponentChildren => tokens?.map((token, at) => <One key={at} token={token} />);

/** Each block is written from the side that its own script begins at. */
const AUTO = { dir: "auto" } as const;

function One({ token }: { token: Token }): ComponentChildren {
  const generic = token as Tokens.Generic;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page has its own headings; an answer's begin below them.
      return h(`h${Math.min(6, generic.depth + 2)}`, AUTO, all(generic.tokens));
    case "paragraph":
      return <p {...AUTO}>{all(generic.tokens)}</p>;
    case "blockquote":
      return <blockquote {...AUTO}>{all(generic.tokens)}</blockquote>;
    case "list": {
      const items = (token as Tokens.List).items.map((item, at) => <Item key={at} item={item} />);
      return generic.ordered ? <ol {...AUTO} start={generic.start || 1}>{items}</ol> : <ul {...AUTO}>{items}</ul>;
    }
    case "code":
      return <pre tabIndex={0}><code>{generic.text}</code></pre>;
    case "codespan":
      return <code>{generic.text}</code>;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "br":
      return <br />;
    case "strong":
    case "em":
    case "del":
      return h(token.type, null, all(generic.tokens));
    case "link":
    case "image":
      return <Link href={generic.href}>{token.type === "link" ? all(generic.tokens) : generic.text || generic.href}</Link>;
    case "text":
      return generic.tokens ? all(generic.tokens) : plain(generic.text);
    case "checkbox":
      return null;
    case "escape":
      return generic.text;
    default:
      // HTML as the model wrote it, to be read.
      return token.raw;
  }
}

function Item({ item }: { item: Tokens.ListItem }) {
  return (
    <li {...AUTO}>
      {item.task ? <>{item.checked ? "☑" : "☐"} </> : null}
      {all(item.tokens)}
    </li>
  );
}

/** An image's address can carry away what was said, so images are links too: a person decides. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?:|mailto:)/i.test(href)) return <>{children}</>;
  return <a href={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}

function Table({ table }: { table: Tokens.Table }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{table.header.map((cell, at) => <th key={at} scope="col" {...AUTO}>{all(cell.tokens)}</th>)}</tr></thead>
        <tbody>
          {table.rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column} {...AUTO}>{all(cell.tokens)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** Characters that the text names instead of writing them. */
function plain(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (whole, decimal, hexadecimal, name) => {
    if (name) return NAMED[name] ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hexadecimal, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
