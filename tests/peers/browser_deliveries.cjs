// Every act on deliveries, by a person in a browser: tabs, filters, bulk acts with their questions, jobs, and hostile bodies.
// Usage: browser_deliveries.cjs LINK HOSTILE_ID
"use strict";

const { assert, run, becomeOwner } = require("./browser.cjs");
const [link, hostile] = process.argv.slice(2);

void run(async (page, shot) => {
  await becomeOwner(page, link);
  const project = page.url();

  // Hostile bodies: shown, and nothing of them runs.
  for (const rest of ["/body", "/body?as=raw", "/body?as=raw&all=true"]) {
    await page.goto(`${project}/deliveries/${hostile}${rest}`);
    const shown = await page.locator(".body-view").innerText();
    assert.match(shown, /<script>window\.hacked = true<\/script>/);
    assert.match(shown, /U\+202E/);
    assert.match(shown, /more characters/);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator(".body-view img, .body-view script, .body-view iframe").count(), 0);
  }
  await shot("hostile");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Download" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), hostile);

  // Failed Messages: filter, tick, discard with a question, and the job.
  await page.getByRole("link", { name: "Failed Messages", exact: true }).click();
  const rows = page.locator("tbody tr");
  await rows.first().waitFor();
  const all = await rows.count();
  assert.ok(all >= 5, `${all} dead letters`);
  await page.getByLabel("Path").fill("/patients/3");
  await page.getByRole("button", { name: "Find" }).click();
  await page.waitForURL(/path=/);
  assert.equal(await rows.count(), 1);
  await shot("failed-filtered");
  await page.getByRole("checkbox", { name: /^Tick msg_/ }).check();
  await page.getByRole("button", { name: "Discard…" }).click();
  await page.getByRole("heading", { name: "Discard 1 delivery?" }).waitFor();
  await shot("question");
  await page.getByRole("link", { name: "Keep things as they are" }).click();
  assert.equal(await rows.count(), 1, "nothing was done");
  await page.getByRole("checkbox", { name: /^Tick msg_/ }).check();
  await page.getByRole("button", { name: "Discard…" }).click();
  await page.getByRole("button", { name: "Discard 1" }).click();
  await page.getByText("1 done of 1").waitFor();
  await page.locator(".badge", { hasText: "done" }).waitFor();
  await shot("job");
  await page.getByRole("link", { name: "Back to the list" }).click();
  await page.getByText("Nothing on this page fits.").waitFor();
  await page.getByRole("link", { name: "Show all" }).click();
  assert.equal(await rows.count(), all - 1);

  // All that the filter finds, as a job.
  await page.getByRole("radio", { name: /as a job/ }).check();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByRole("heading", { name: `Retry ${all - 1} deliveries?` }).waitFor();
  await page.getByRole("button", { name: `Retry ${all - 1}` }).click();
  await page.getByText(`${all - 1} done of ${all - 1}`).waitFor();

  // The log knows all of them; one by one they can be sent again, after a question.
  await page.getByRole("link", { name: "Delivery log", exact: true }).click();
  await page.locator("select[name=status]").selectOption("DISCARDED");
  await page.getByRole("button", { name: "Find" }).click();
  await page.waitForURL(/status=DISCARDED/);
  assert.equal(await rows.count(), 1);
  await page.getByRole("link", { name: "POST /patients/3" }).click();
  await page.getByRole("link", { name: "Resend" }).click();
  await page.getByRole("heading", { name: /^Resend/ }).waitFor();
  await page.getByRole("button", { name: "Resend" }).click();
  await page.getByText("It is sent again").waitFor();
  await shot("resent");

  // Forward to a topic, from the dead-letter tab.
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByRole("link", { name: "Delivery queue of Dead End" }).click();
  await page.getByRole("link", { name: /^Dead-letter queue/ }).click();
  await page.locator("tbody tr a").first().waitFor();
  await page.locator("tbody tr a").first().click();
  await page.getByRole("link", { name: "Forward to a topic" }).click();
  await page.getByLabel("Topic").selectOption("undeliverable");
  await page.getByRole("button", { name: "Forward" }).click();
  await page.locator(".standing .badge", { hasText: "Forwarded" }).waitFor();

  // By keyboard: the first thing is the way past the navigation.
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");

  // A viewer: made, logged in, sees no body.
  await page.getByRole("link", { name: "Users", exact: true }).click();
  await page.getByRole("link", { name: "a page of their own" }).click();
  await page.getByLabel("Name").fill("vera");
  await page.getByLabel("First password").fill("a long enough word");
  await page.getByRole("button", { name: "Make the user" }).click();
  await page.getByText("vera may log in.").waitFor();
  await shot("users");
  await page.getByText("Logged in as").click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Name").fill("vera");
  await page.getByLabel("Password", { exact: true }).fill("wrong and long enough");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByText("The name or the password is wrong.").waitFor();
  await page.getByLabel("Password", { exact: true }).fill("a long enough word");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.goto(`${project}/deliveries/${hostile}`);
  await page.getByText("a viewer sees none unless an owner allows it").waitFor();
  assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
  await shot("viewer");
});
