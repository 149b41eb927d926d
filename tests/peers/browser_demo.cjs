// A newcomer at `serve --demo`: finds the blocked queue, edits the bad body, sends it again, sees it delivered, and the queue behind it go.
// Usage: browser_demo.cjs LINK
"use strict";

const { assert, run, becomeOwner } = require("./browser.cjs");

void run(async (page, shot) => {
  await becomeOwner(page, process.argv[2]);
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByRole("link", { name: "Delivery queue of Patient Registry" }).click();
  const blocked = page.getByRole("region", { name: "What blocks the queue" });
  await blocked.waitFor();
  assert.match(await blocked.innerText(), /The head has failed \d+ times?/);
  assert.match(await blocked.innerText(), /HTTP 422/);
  await shot("queue-blocked");
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
