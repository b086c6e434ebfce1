// SPDX-License-Identifier: Apache-2.0
// Pictures of all pages in light, dark, on a tablet and on a phone. Usage: node dev/shots.mjs ADDRESS FOLDER [NAME...]
import { in_each_look } from "./looks.mjs";

const [address, folder, ...names] = process.argv.slice(2);
const PAGES = {
  overview: "#/overview",
  jobs: "#/jobs",
  timeline: "#/timeline?job=3&colour=tag",
  topology: "#/topology",
  clocks: "#/clocks?gpu=2",
  health: "#/health",
  job: "#/jobs/4",
  failed: "#/jobs/2",
  metrics: "#/jobs/4?tab=metrics",
  log: "#/jobs/4?tab=log",
  submit: "#/submit",
};

await in_each_look(folder, async (page, look) => {
  for (const [name, hash] of Object.entries(PAGES)) {
    if (names.length && !names.includes(`${name}-${look}`)) continue;
    await page.goto(`${address}${hash}`);
    await page.locator(".link.live").waitFor();
    await page.waitForTimeout(2500);
    await page.screenshot({ path: `${folder}/${name}-${look}.png` });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) console.log(`${name}-${look}: ${wide} px wider than the window`);
  }
});
