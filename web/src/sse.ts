// Server-sent events out of a response. The browser's own EventSource can send neither a token nor a message.

export interface Sent {
  event: string;
  data: string;
}

/** The service sends something at least every 15 seconds; after this long without, the connection is dead. */
const SILENCE_MS = 40_000;

export async function* sent(response: Response): AsyncGenerator<Sent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  // In pieces until a line ends: an event of megabytes comes in many, and joining each to all before would take long.
  let rest: string[] = [];
  let event = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await soon(reader.read());
      if (done) return;
      rest.push(value);
      if (!value.includes("\n")) continue;
      const lines = rest.join("").split(/\r?\n/);
      rest = [lines.pop()!];
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { event, data: data.join("\n") };
          event = "";
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(5).trimStart());
        } else if (line.startsWith("event:")) {
          event = line.slice(6).trim();
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function soon<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TypeError("the stream is silent")), SILENCE_MS);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
