// SPDX-License-Identifier: Apache-2.0
// What pictures are taken with: light, dark, a tablet and a phone.
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const LOOKS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  tablet: { viewport: { width: 768, height: 1024 }, colorScheme: "light" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", deviceScaleFactor: 2 },
};

/** Runs shoot(page, name of the look) in each, and prints what the page complains of. */
export async function in_each_look(folder, shoot) {
  mkdirSync(folder, { recursive: true });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.log(look, message.text()));
    page.on("pageerror", (error) => console.log(look, error.message));
    await shoot(page, look);
    await context.close();
  }
  await browser.close();
}
