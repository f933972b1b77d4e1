// Lists and calls tools by the official TypeScript SDK: node client.mjs MODULES PACKAGE URL FILE COMMAND... (URL may be "")
// Prints one line of JSON: what was agreed on, how many tools there are, and what two calls came to.
import { createRequire } from "node:module";

const [modules, name, url, file, command, ...args] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const newer = name === "@modelcontextprotocol/client";
const { Client } = require(newer ? name : `${name}/client/index.js`);
const { StdioClientTransport } = require(newer ? `${name}/stdio` : `${name}/client/stdio.js`);
const { StreamableHTTPClientTransport } = require(newer ? name : `${name}/client/streamableHttp.js`);

const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client(
  { name: "typescript", version: "1" },
  newer ? { versionNegotiation: { mode: "auto" } } : undefined,
);
await client.connect(transport);
const tools = [];
let cursor;
do {
  const page = await client.listTools({ cursor });
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor);
const read = await client.callTool({ name: "files_read_text_file", arguments: { path: file } });
const move = await client.callTool({
  name: "files_move_file",
  arguments: { source: file, destination: `${file}.moved` },
});
const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
console.log(
  JSON.stringify({
    version,
    tools: tools.length,
    read: read.structuredContent?.content ?? null,
    waits: move.isError === true && move.content[0].text.includes("waits for a person's approval"),
  }),
);
await client.close();
