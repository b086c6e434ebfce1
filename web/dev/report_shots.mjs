// SPDX-License-Identifier: Apache-2.0
// Pictures of reports in light, dark, on a tablet and on a phone. Usage: node dev/report_shots.mjs FOLDER REPORT.html...
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { in_each_look } from "./looks.mjs";

const [folder, ...reports] = process.argv.slice(2);

await in_each_look(folder, async (page, look) => {
  for (const report of reports) {
    await page.goto(pathToFileURL(resolve(report)).href);
    await page.locator("h1").waitFor();
    await page.screenshot({ path: `${folder}/${basename(report, ".html")}-${look}.png`, fullPage: true });
  }
});
