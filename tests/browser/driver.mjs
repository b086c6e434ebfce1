// SPDX-License-Identifier: Apache-2.0
// A browser that does what it is told: each line of input is a JSON text of JavaScript, run with `page` (its one tab), `context`
// and the functions below; each line of output is {"value"} or {"problem"}. What the page complains of is kept in `said`, what it
// asks for in `asked`. Usage: node driver.mjs WEB_FOLDER CHROMIUM WAIT_S
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [web, executablePath, wait_s] = process.argv.slice(2);
const need = createRequire(`${web}/package.json`);
const { chromium } = need("playwright-core");
const axe_source = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");

// There is no graphics card to be found, and a process for it, or a tab in reserve, would only cost time.
const frugal = ["--disable-gpu", "--in-process-gpu", "--disable-features=SpareRendererForSitePerProcess"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", ...frugal] });
browser.on("disconnected", () => process.exit(1));
const context = await browser.newContext();
context.setDefaultTimeout(wait_s * 1000);
const world = { context, page: undefined, said: [], asked: [] };

/** Another tab, instead of the one that there was. */
world.tab = async () => {
  await world.close();
  const page = (world.page = await context.newPage());
  page.on("request", (request) => world.asked.push(request.url().replace(/^https?:\/\/[^/]*/, "")));
  page.on("pageerror", (error) => world.said.push(error.message));
  page.on("console", (message) => message.text().includes("Content Security Policy") && world.said.push(message.text()));
};
world.close = async () => {
  await world.page?.close();
  world.page = undefined;
};
/** The tab as one that is new, or where somebody has signed in with the token: at `blank`, which is anything of the same origin. */
world.fresh = async (width, height, colorScheme, blank, token) => {
  const { page } = world;
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme });
  await page.goto(blank);
  await page.evaluate((text) => {
    localStorage.clear();
    sessionStorage.clear();
    if (text) sessionStorage.setItem("takt-token", text);
  }, token);
  world.said.length = world.asked.length = 0;
};
/** Serious findings as "rule: element". */
world.axe = async () => {
  if (!(await world.page.evaluate("Boolean(globalThis.axe)"))) await world.page.evaluate(axe_source);
  const { violations } = await world.page.evaluate("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html.slice(0, 120)}`));
};

const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const names = Object.keys(world);
    answer = { value: (await new AsyncFunction(...names, JSON.parse(line))(...names.map((name) => world[name]))) ?? null };
  } catch (problem) {
    answer = { problem: String(problem.message ?? problem) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
browser.removeAllListeners("disconnected");
await browser.close();
