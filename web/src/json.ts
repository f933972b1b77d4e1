// JSON without loss. A number that JavaScript would round stays the text it was written as, and what cannot be seen is
// written as an escape: what a person reads, approves or sends is exactly what is meant.

/** A piece of JSON kept as it was written. */
export class Exact {
  constructor(readonly text: string) {}
}

const LONG = /\d{16}/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// Without a choice at each character: a text of megabytes would fill the pattern's stack.
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const SPACE = /\s*/y;

/** The value of a text. Numbers that would be rounded become `Exact`; with `all`, also those written otherwise (1.0). */
export function parse<T = unknown>(text: string, { all = false } = {}): T {
  const plain = JSON.parse(text) as T;
  return all || LONG.test(text) ? (new Reader(text, all).value() as T) : plain;
}

/** Reads a text that is known to be JSON. */
class Reader {
  private at = 0;

  constructor(private readonly text: string, private readonly all: boolean) {}

  value(): unknown {
    this.take(SPACE);
    const sign = this.text[this.at]!;
    const found = sign === "{" ? this.object() : sign === "[" ? this.array() : this.plain(sign);
    this.take(SPACE);
    return found;
  }

  private plain(sign: string): unknown {
    if (sign === '"') return JSON.parse(this.take(STRING));
    for (const [word, value] of [["true", true], ["false", false], ["null", null]] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const text = this.take(NUMBER);
    const number = Number(text);
    const exact = this.all ? String(number) === text : Number.isSafeInteger(number) || /[.eE]/.test(text);
    return exact ? number : new Exact(text);
  }

  private object(): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    this.each("}", () => {
      const name = JSON.parse(this.take(STRING)) as string;
      this.take(SPACE);
      this.at += 1; // the colon
      // Not by assignment, to which one name means something else.
      Object.defineProperty(found, name, { value: this.value(), enumerable: true, configurable: true, writable: true });
    });
    return found;
  }

  private array(): unknown[] {
    const found: unknown[] = [];
    this.each("]", () => found.push(this.value()));
    return found;
  }

  private each(end: string, read: () => void): void {
    do {
      this.at += 1; // the bracket, then each comma
      this.take(SPACE);
      if (this.text[this.at] !== end) read();
      this.take(SPACE);
    } while (this.text[this.at] !== end);
    this.at += 1;
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)![0];
    this.at += found.length;
    return found;
  }
}

/** A value as JSON, with every `Exact` as it was written; on many lines where an indent is given. */
export function write(value: unknown, indent = 0, margin = ""): string {
  if (value instanceof Exact) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inner = margin + " ".repeat(indent);
  const list = Array.isArray(value);
  const parts = list
    ? value.map((item) => write(item, indent, inner))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([name, item]) => `${JSON.stringify(name)}:${indent ? " " : ""}${write(item, indent, inner)}`);
  const [open, close] = list ? "[]" : "{}";
  if (!parts.length) return `${open}${close}`;
  return indent ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}` : `${open}${parts.join(",")}${close}`;
}

// Controls, marks of direction, everything without width, spaces that are none, what has no meaning yet or in private.
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** A text in which every character can be seen: those that cannot are written as JSON would escape them. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (hidden) => {
    if (hidden === "\n" || hidden === "\t") return hidden;
    return Array.from({ length: hidden.length }, (_, at) => `\\u${hidden.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
  });
}
