// What the browser tests share: Chromium with strict ears, and steps that say what they waited for.
"use strict";

const assert = require("node:assert/strict");
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

module.exports = { assert, run, becomeOwner };
