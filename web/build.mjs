// SPDX-License-Identifier: Apache-2.0
// Makes the page that takt serves (index.html) and the one of results (report.html): styles and code in one file each
// that asks nobody for anything. The same input gives the same bytes.
// Usage: node build.mjs [FOLDER]
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = process.argv[2] ?? here("dist");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

async function make(name, entry, shell, limit_bytes) {
  const { outputFiles } = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    outdir: "/out",
    format: "esm",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "eof",
    charset: "utf8",
    absWorkingDir: here("."),
  });
  const text_of = (ending) => outputFiles.find((file) => file.path.endsWith(ending)).text.trim();

  // What would end the element early is written so that it does not; functions as replacements keep "$&" as it is.
  const script = text_of(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const style = text_of(".css");
  const page = readFileSync(here(shell), "utf8")
    .replace("/*SCRIPT-HASH*/", () => hash(script))
    .replace("/*STYLE-HASH*/", () => hash(style))
    .replace("/*STYLE*/", () => style)
    .replace("/*SCRIPT*/", () => script);
  const packed_bytes = gzipSync(page, { level: 9 }).length;

  if (packed_bytes > limit_bytes) throw new Error(`${name}: ${packed_bytes} bytes compressed, more than ${limit_bytes}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), page);
  console.log(`${name}: ${page.length} characters, ${packed_bytes} bytes compressed`);
}

await make("index.html", "src/main.tsx", "src/shell.html", 200 * 1024);
await make("report.html", "src/report/main.tsx", "src/report.html", 60 * 1024);
