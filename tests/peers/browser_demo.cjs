// A newcomer at `serve --demo`: finds the blocked queue, edits the bad body, sends it again, sees it delivered, and the queue behind it go.
// Usage: browser_demo.cjs LINK
"use strict";

const { assert, run, becomeOwner, isAccessible, fits } = require("./browser.cjs");

/** The server tells the overview of changes: with the page's own timer taken away it moves all the same. */
async function isTold(page, project) {
  const told = await page.context().newPage();
  await told.addInitScript(() => { window.setInterval = () => 0; });
  await told.goto(project);
  const figures = () => told.locator("svg.chart").first().getAttribute("aria-label");
  const before = await figures();
  await told.waitForFunction((former) => document.querySelector("svg.chart").getAttribute("aria-label") !== former, before);
  await told.close();
}

/** Without script the same page is there, and loads itself anew. */
async function worksWithoutScript(page, project) {
  const context = await page.context().browser().newContext({ javaScriptEnabled: false, storageState: await page.context().storageState() });
  const plain = await context.newPage();
  await plain.goto(project);
  assert.equal(await plain.locator("svg.chart").count(), 2);
  assert.equal(await plain.locator("meta[http-equiv=refresh]").count(), 1);
  await plain.getByRole("link", { name: "24 h" }).click();
  await plain.waitForURL(/range=day/);
  await context.close();
}

/** A channel and its service are at work: each run fails once, and then the service takes it. */
async function channelIsAtWork(page, project, shot) {
  await page.goto(`${project}/channels`);
  const row = page.locator("tbody tr", { hasText: "Order intake" });
  await row.locator("svg.spark").waitFor();
  assert.match(await row.innerText(), /order-intake/);
  await isAccessible(page);
  await row.getByRole("link", { name: "Order intake", exact: true }).click();
  await page.locator(".last-error", { hasText: "HTTP 503" }).waitFor();
  await isAccessible(page);
  await shot("channel");
  await page.goto(`${project}/deliveries?connection=Order+intake&type=channel_rest&status=SUCCESS`);
  await page.locator("tbody tr", { hasText: "service order-intake" }).first().waitFor();
}

void run(async (page, shot) => {
  await becomeOwner(page, process.argv[2]);
  const project = page.url();
  await isTold(page, project);
  await worksWithoutScript(page, project);
  // Pictures show a demo that has run for a while.
  if (process.env.POSTRIDER_SHOTS) await page.waitForTimeout(75_000);
  await page.goto(project);
  await page.getByText("Patient Registry is blocked").waitFor({ timeout: 60_000 });
  await isAccessible(page);
  await shot("overview");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot("overview-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await fits(page);
  await shot("phone-overview");
  await page.setViewportSize({ width: 1280, height: 900 });
  await channelIsAtWork(page, project, shot);
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await isAccessible(page);
  await shot("connections");
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByRole("link", { name: "Delivery queue of Patient Registry" }).click();
  const blocked = page.getByRole("region", { name: "What blocks the queue" });
  await blocked.waitFor();
  assert.match(await blocked.innerText(), /The head has failed \d+ times?/);
  assert.match(await blocked.innerText(), /HTTP 422/);
  await shot("queue-blocked");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  await fits(page);
  await shot("phone-queue");
  await page.setViewportSize({ width: 1280, height: 900 });
  await blocked.getByRole("link", { name: "Look at it" }).click();
  await page.getByText("as a rule something in it is wrong").waitFor();
  await page.getByRole("img").first().waitFor();
  await shot("delivery");
  await page.getByRole("link", { name: "See what was answered" }).click();
  await page.getByText("birthDate must be YYYY-MM-DD").first().waitFor();
  await shot("answers");
  await page.goBack();
  await page.getByRole("link", { name: "See the body" }).click();
  await page.getByText('"25.12.1974"').waitFor();
  await shot("body");
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  const text = page.getByLabel("Body");
  const body = await text.inputValue();
  assert.equal(body, '{\n  "name": "Jane Doe",\n  "birthDate": "25.12.1974"\n}\n');
  await text.fill(body.replace("25.12.1974", "1974-12-25"));
  await page.getByRole("button", { name: "Show the difference" }).click();
  const lines = await page.locator("table.difference tr").allInnerTexts();
  assert.deepEqual(
    lines.map((line) => line.replace(/\s+/g, " ").trim()).filter((line) => /[−+] /.test(line)),
    ['3 − "birthDate": "25.12.1974"', '3 + "birthDate": "1974-12-25"'],
  );
  await shot("difference");
  await page.getByRole("button", { name: "Save and attempt now" }).click();
  await page.getByText("The body is changed, and the delivery is on its way again.").waitFor();
  await page.locator(".standing .badge", { hasText: "Delivered" }).waitFor();
  await shot("delivered");
  const id = page.url().split("/").at(-1);
  await page.getByRole("link", { name: "See it as it was accepted" }).click();
  await page.getByText('"25.12.1974"').waitFor();
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByRole("link", { name: "Delivery queue of Patient Registry" }).click();
  await page.getByRole("heading", { name: "Nothing waits" }).waitFor();
  console.log(JSON.stringify({ delivered: id }));
});
