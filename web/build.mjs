// Builds the page into the package: one script, one style sheet, one document. `--watch` goes on building.
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = `${here}../src/journeyman/doors/http/web/static`;

await mkdir(out, { recursive: true });
await copyFile(`${here}src/index.html`, `${out}/index.html`);

const options = {
  entryPoints: { app: `${here}src/main.tsx`, style: `${here}src/style.css` },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "info",
};

if (process.argv.includes("--watch")) {
  await (await esbuild.context(options)).watch();
} else {
  await esbuild.build(options);
  await writeFile(`${out}/LICENSES.txt`, await licences(["preact", "marked"]));
}

// What is inside the script belongs to others; their terms go with it.
async function licences(names) {
  const texts = [];
  for (const name of names) {
    const folder = `${here}node_modules/${name}`;
    const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const file = { marked: "LICENSE.md" }[name] ?? "LICENSE";
    texts.push(`${name} ${version}\n\n${(await readFile(`${folder}/${file}`, "utf8")).trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
