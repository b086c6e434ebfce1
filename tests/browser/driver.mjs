// SPDX-License-Identifier: Apache-2.0
// A browser that does what it is told: each line of input is a JSON text of JavaScript, run with `page`, `context`,
// `browser` and `axe`; each line of output is {"value"} or {"problem"}. What the page complains of is kept in `said`, what it asks for in `asked`.
// Usage: node driver.mjs WEB_FOLDER CHROMIUM
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [web, executablePath] = process.argv.slice(2);
const need = createRequire(`${web}/package.json`);
const { chromium } = need("playwright-core");
const axe_source = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const world = { browser, said: [], asked: [] };

/** A token is there before the page is, as in a tab where somebody has signed in. */
world.open = async (options, token) => {
  await world.context?.close();
  world.context = await browser.newContext(options);
  world.context.setDefaultTimeout(60_000);
  if (token) await world.context.addInitScript((text) => sessionStorage.setItem("takt-token", text), token);
  world.page = await world.context.newPage();
  world.said.length = world.asked.length = 0;
  world.page.on("request", (request) => world.asked.push(request.url().replace(/^https?:\/\/[^/]*/, "")));
  world.page.on("pageerror", (error) => world.said.push(error.message));
  world.page.on("console", (message) => message.text().includes("Content Security Policy") && world.said.push(message.text()));
};
/** Serious findings as "rule: element". */
world.axe = async () => {
  await world.page.evaluate(axe_source);
  const { violations } = await world.page.evaluate("axe.run()");
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
await browser.close();
