// What the browser tests share: Chromium with strict ears, and steps that say what they waited for.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require(path.join(process.env.POSTRIDER_PEERS_NODE ?? ".", "node_modules", "playwright-core"));

/**
 * Runs a scenario on one page of a new browser. Whatever a page logs as an error, throws, or asks by a dialog fails it: no page of ours does.
 * @param {(page: import("playwright-core").Page, shot: (name: string) => Promise<void>) => Promise<void>} scenario
 */
async function run(scenario, options = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const shots = process.env.POSTRIDER_SHOTS;
  const shot = async (name) => {
    if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
  };
  let failed = null;
  try {
    await scenario(page, shot);
    assert.deepEqual(complaints, [], "the browser complained");
  } catch (error) {
    failed = error;
    console.error(`at ${page.url()}`);
    console.error((await page.locator("body").innerText().catch(() => "")).slice(0, 4000));
    await shot("failed");
  }
  await browser.close();
  if (failed) {
    console.error(failed);
    process.exit(1);
  }
}

/** Opens the link of the first start and becomes the owner. */
async function becomeOwner(page, link) {
  await page.goto(link);
  await page.getByLabel("Name").fill("ada@example.org");
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByLabel("The password again").fill("correct horse battery");
  await page.getByRole("button", { name: "Become the owner" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/** axe-core finds nothing serious, in light and in dark. */
async function isAccessible(page) {
  const axe = fs.readFileSync(path.join(process.env.POSTRIDER_PEERS_NODE ?? ".", "node_modules/axe-core/axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
    const told = serious.map((found) => `${found.id}: ${found.nodes.map((node) => node.target.join(" ")).join(", ")}`);
    assert.deepEqual(told, [], `${page.url()} in ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Nothing is wider than the screen. */
async function fits(page) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `${page.url()} is ${over} px too wide`);
}

/** What people do on pages of the first project, and what the API says to whoever has the key. */
function tools(link, key) {
  const base = new URL(link).origin;
  return {
    base,
    api: async (rest) => {
      const answer = await fetch(`${base}/api/v1/projects/default${rest}`, { headers: { "X-API-Key": key } });
      return answer.status === 200 ? answer.json() : { status: answer.status };
    },
    go: (page, rest) => page.goto(`${base}/ui/projects/default${rest}`),
    button: (page, name) => page.locator("main").getByRole("button", { name, exact: true }),
    link: (page, name) => page.locator("main").getByRole("link", { name, exact: true }),
    said: (page, text) => page.locator(".flash", { hasText: text }).waitFor(),
  };
}

module.exports = { assert, run, becomeOwner, isAccessible, fits, tools };
