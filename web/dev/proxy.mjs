// SPDX-License-Identifier: Apache-2.0
// For work on the page: serves dist/index.html and hands /v1 to takt's Unix socket.
// Usage: node dev/proxy.mjs SOCKET [PORT]; it listens on 127.0.0.1 and is you: for your own machine only.
import http from "node:http";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [socketPath = process.env.TAKT_SOCKET, port = "9833"] = process.argv.slice(2);
const page = new URL("../dist/index.html", import.meta.url);

function hand_on(request, response) {
  const headers = { "Content-Type": request.headers["content-type"], Host: "takt" };
  if (!headers["Content-Type"]) delete headers["Content-Type"];
  if (request.headers["content-length"]) headers["Content-Length"] = request.headers["content-length"];
  const onward = http.request({ socketPath, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => {
    if (!response.headersSent) response.writeHead(502);
    response.end();
  });
  request.pipe(onward);
}

/** As strict as takt's own: nothing but the two elements that are in the page, by their hashes. */
function policy(html) {
  const hash = (tag) => {
    const [, text] = new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`).exec(html);
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };
  return `default-src 'none'; script-src ${hash("script")}; style-src ${hash("style")}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'`;
}

http
  .createServer((request, response) => {
    if (request.url.startsWith("/v1/")) return hand_on(request, response);
    const html = readFileSync(page, "utf8");
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy(html) });
    response.end(html);
  })
  .listen(Number(port), "127.0.0.1", function () {
    console.log(`http://127.0.0.1:${this.address().port}/`);
  });
