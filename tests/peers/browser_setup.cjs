// What somebody does who sets things up and looks after them: every form is sent, and each result is checked through the API.
// Arguments: the link of the first start, a key of the API, and the address of a receiver that answers 200.
"use strict";

const fs = require("node:fs");
const { assert, run, becomeOwner, isAccessible, fits, tools } = require("./browser.cjs");

const [link, key, receiver] = process.argv.slice(2);
const { base, api, go, button, link: link_, said } = tools(link, key);

async function connections(page, shot) {
  await go(page, "/connections");
  await page.getByRole("heading", { name: "No connection yet" }).waitFor();
  await link_(page, "New connection").click();
  await isAccessible(page);
  await link_(page, "REST").click();
  await page.getByLabel("Name").fill("Ledger");
  await page.getByLabel("Host").fill(receiver);
  await page.getByLabel("Path", { exact: true }).fill("/ledger");
  await page.getByRole("tab", { name: "Delivery" }).click();
  assert.equal(await page.getByLabel("Host").isVisible(), false);
  // The seed's own example: 5 retries wait 2, 4, 8, 8 and 8 seconds.
  await page.locator("summary", { hasText: "On failure" }).click();
  await page.getByLabel("Max. retries", { exact: true }).fill("5");
  await page.locator("#schedule li").nth(5).waitFor();
  const waits = await page.locator("#schedule li").allInnerTexts();
  assert.deepEqual(waits.map((text) => text.match(/\+ (\d+) s/)?.[1] ?? "0"), ["0", "2", "4", "8", "8", "8"]);
  await page.locator("summary", { hasText: "is retried 5 times within 30 s" }).waitFor();
  await page.getByLabel("Use queue").selectOption({ label: "yes" });
  await page.getByLabel("Action", { exact: true }).selectOption("retry");
  await page.getByLabel("Every (s)").fill("soon");
  await isAccessible(page);
  await shot("delivery-tab");
  await button(page, "Create").click();
  // What is wrong stands at its field, what was typed stays, and nothing is stored.
  await page.getByRole("alert").getByText("Nothing was changed").waitFor();
  assert.equal(await page.getByLabel("Every (s)").getAttribute("aria-invalid"), "true");
  assert.equal(await page.getByLabel("Every (s)").inputValue(), "soon");
  assert.match(await page.locator("#h-dlq_retry_interval .error").innerText(), /dlq_retry_interval.*allowed is/);
  assert.deepEqual((await api("/connections")).data, []);
  await page.getByLabel("Every (s)").fill("90");
  await button(page, "Create").click();
  await said(page, "Ledger is there");
  const made = await api("/connections/Ledger");
  assert.deepEqual(
    [made.host, made.max_retries, made.use_queue, made.dlq_action, made.dlq_retry_interval, "tls_verify" in made],
    [receiver, 5, true, "retry", 90, false],
  );
  await isAccessible(page);
  await button(page, "Ping").click();
  await said(page, "It can be reached");
  await link_(page, "Send a request").click();
  await page.getByLabel("Body").fill('{"invoice": 1}');
  await isAccessible(page);
  await button(page, "Send").click();
  await page.getByText("Delivered.", { exact: true }).waitFor();
  assert.equal((await api("/deliveries?connection=Ledger")).data[0].status, "SUCCESS");
  await link_(page, "Back").click();
  await button(page, "Pause").click();
  await page.locator(".banner", { hasText: "Paused: requests are stored" }).waitFor();
  assert.equal((await api("/connections/Ledger")).state.paused, true);
  await button(page, "Resume").click();
  await said(page, "resumed");
  assert.equal((await api("/connections/Ledger")).state.paused, false);
  // A new name, and nothing else is touched.
  await link_(page, "Settings").click();
  await page.getByLabel("Name").fill("Main ledger");
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  const renamed = await api("/connections/Main%20ledger");
  assert.deepEqual([renamed.id, renamed.dlq_retry_interval, renamed.max_retries], [made.id, 90, 5]);
  await go(page, "/connections");
  await isAccessible(page);
  await go(page, "/connections/rest/Main%20ledger/delete");
  await isAccessible(page);
  await link_(page, "Keep things as they are").click();
  assert.equal((await api("/connections")).data.length, 1);
}

/** The same form with script switched off: what is drawn as somebody types has a button. */
async function withoutScript(page) {
  const context = await page.context().browser().newContext({ javaScriptEnabled: false, storageState: await page.context().storageState() });
  const plain = await context.newPage();
  await go(plain, "/connections/new/mllp");
  await plain.getByLabel("Name").fill("EHR");
  await plain.getByLabel("Address").fill("127.0.0.1:2575");
  await plain.locator("summary", { hasText: "On failure" }).click();
  await plain.getByLabel("Max. retries", { exact: true }).fill("2");
  await button(plain, "Draw it anew").click();
  assert.equal(await plain.locator("#schedule li").count(), 3);
  assert.equal(await plain.getByLabel("Address").inputValue(), "127.0.0.1:2575");
  await button(plain, "Create").click();
  await said(plain, "EHR is there");
  await link_(plain, "Delete").click();
  await button(plain, "Delete it").click();
  await said(plain, "EHR is deleted");
  await context.close();
  assert.equal((await api("/connections/EHR")).status, 404);
}

async function topicsAndSecurity(page) {
  await go(page, "/topics");
  await isAccessible(page);
  await link_(page, "New topic").click();
  await page.getByLabel("Name").fill("invoice.paid");
  await page.getByLabel("Description").fill("Paid invoices");
  await isAccessible(page);
  await button(page, "Create").click();
  await said(page, "invoice.paid is there");
  assert.equal((await api("/topics/invoice.paid")).description, "Paid invoices");
  await link_(page, "invoice.paid").click();
  await link_(page, "New subscription").click();
  await page.getByLabel("Name").fill("bookkeeping");
  await button(page, "Create").click();
  await page.getByRole("rowheader", { name: "bookkeeping" }).waitFor();
  assert.equal((await api("/topics/invoice.paid/subscriptions")).data[0].redeliver_after_seconds, 30);
  await page.getByRole("link", { name: "Delete bookkeeping" }).click();
  await button(page, "Delete it").click();
  await said(page, "bookkeeping is deleted");
  assert.deepEqual((await api("/topics/invoice.paid/subscriptions")).data, []);

  await go(page, "/security");
  await isAccessible(page);
  await link_(page, "HTTP Basic").click();
  await page.getByLabel("Name", { exact: true }).fill("billing");
  await page.getByLabel("Username").fill("ada");
  await page.getByLabel("Password").fill("sesame");
  await button(page, "Create").click();
  await said(page, "billing is there");
  await link_(page, "billing").click();
  assert.doesNotMatch(await page.content(), /sesame/);
  await page.getByLabel("Username").fill("grace");
  await isAccessible(page);
  await button(page, "Save").click();
  await said(page, "It is changed");
  assert.deepEqual([(await api("/security/billing")).username, (await api("/security/billing")).version], ["grace", 2]);
  await link_(page, "billing").click();
  await link_(page, "Delete").click();
  await button(page, "Delete it").click();
  await said(page, "deleted");
  assert.deepEqual((await api("/security")).data, []);
}

async function endpoints(page, shot) {
  await go(page, "/endpoints");
  await isAccessible(page);
  await link_(page, "New endpoint").click();
  await page.getByLabel("URL").fill("ftp://nowhere");
  await button(page, "Create").click();
  await page.locator(".field-wrong", { hasText: "URL" }).waitFor();
  await page.getByLabel("URL").fill("https://hooks.example.org/in");
  await page.getByLabel("Name").fill("Partner");
  await page.getByRole("tab", { name: "Delivery" }).click();
  assert.equal(await page.locator("#schedule li").count(), 7, "the preset webhook has seven attempts");
  await isAccessible(page);
  await button(page, "Create").click();
  const secret = await page.getByLabel("The secret").inputValue();
  assert.match(secret, /^whsec_/);
  await isAccessible(page);
  await link_(page, "I have copied it").click();
  await page.getByRole("heading", { name: "Partner on" }).waitFor();
  assert.ok(!(await page.content()).includes(secret), "a secret is shown once");
  const [made] = (await api("/endpoints")).data;
  assert.deepEqual([made.name, made.url, made.enabled], ["Partner", "https://hooks.example.org/in", true]);
  await isAccessible(page);
  await link_(page, "Subscribe").click();
  await page.getByLabel("Event types").fill("invoice.*");
  assert.equal(await page.getByLabel("Sent to").inputValue(), "webhook/Partner");
  await isAccessible(page);
  await button(page, "Create").click();
  await page.getByRole("rowheader", { name: "invoice.*" }).waitFor();
  const [subscribed] = (await api("/subscriptions")).data;
  assert.deepEqual([subscribed.eventType, subscribed.endpointId], ["invoice.*", made.id]);
  await page.getByRole("link", { name: "Settings of invoice.*" }).click();
  await page.locator("summary", { hasText: "Its own terms" }).click();
  await page.getByLabel("Attempts in all").fill("3");
  await page.getByLabel("Custom headers").fill("X-Team: seven\nX-Path: a:b");
  await button(page, "Save").click();
  await said(page, "The subscription is changed");
  const changed = await api(`/subscriptions/${subscribed.id}`);
  assert.deepEqual([changed.maxAttempts, changed.customHeaders], [3, { "X-Team": "seven", "X-Path": "a:b" }]);
  await isAccessible(page);

  await go(page, `/endpoints/${made.id}`);
  await button(page, "Send a test").first().click();
  await page.locator(".flash-bad", { hasText: "The test failed" }).waitFor();
  assert.equal((await api(`/endpoints/${made.id}/health`)).lastTest.succeeded, false);
  await button(page, "Switch off").click();
  await said(page, "It is off");
  assert.equal((await api(`/endpoints/${made.id}`)).enabled, false);
  await button(page, "Switch on").first().click();
  await said(page, "did not succeed");
  assert.equal((await api(`/endpoints/${made.id}`)).enabled, true);
  await link_(page, "New secret").click();
  await button(page, "Make a new secret").click();
  assert.notEqual(await page.getByLabel("The secret").inputValue(), secret);
  await link_(page, "I have copied it").click();
  await page.getByText("The former secret signs too").waitFor();
  assert.ok((await api(`/endpoints/${made.id}`)).formerSecretSignsUntil);
  await link_(page, "Settings").click();
  await page.getByLabel("Description").fill("Orders of the partner");
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  assert.deepEqual([(await api(`/endpoints/${made.id}`)).description, (await api(`/endpoints/${made.id}`)).enabled], ["Orders of the partner", true]);
  await shot("endpoint");
  await link_(page, "Delete").click();
  await button(page, "Delete it").click();
  await said(page, "The endpoint is deleted");
  assert.deepEqual([(await api("/endpoints")).data, (await api("/subscriptions")).data], [[], []]);
}

async function settings(page) {
  await go(page, "/keys");
  await isAccessible(page);
  await link_(page, "New key").click();
  await page.getByLabel("Name").fill("Till");
  await button(page, "Make the key").click();
  await page.getByRole("alert").getByText("scopes").waitFor();
  await page.getByLabel("send", { exact: true }).check();
  await isAccessible(page);
  await button(page, "Make the key").click();
  const made = await page.getByLabel("The secret").inputValue();
  assert.match(made, /^prk_/);
  await link_(page, "I have copied it").click();
  assert.ok(!(await page.content()).includes(made));
  const [known] = (await api("/keys")).data;
  assert.deepEqual([known.name, known.scopes], ["Till", ["send"]]);
  await page.getByRole("link", { name: "Revoke Till" }).click();
  await isAccessible(page);
  await button(page, "Revoke it").click();
  await said(page, "The key is revoked");
  assert.deepEqual((await api("/keys")).data, []);

  await go(page, "/settings");
  await page.getByLabel("E-mail of the owner").fill("ada@example.org");
  await page.getByLabel("Alert: dead letters", { exact: true }).fill("7");
  await isAccessible(page);
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  assert.deepEqual([(await api("")).ownerEmail, (await api("")).alertDeadLetters], ["ada@example.org", 7]);

  await go(page, "/configuration");
  await isAccessible(page);
  await page.getByLabel("A file").fill("outgoing_rest:\n  - name: Main ledger\n    hots: x\n");
  await button(page, "Show the difference").click();
  await page.getByRole("alert").getByText("hots").waitFor();
  const file = `outgoing_rest:\n  - name: Imported\n    host: ${receiver}\n    url_path: /in\n    max_retries: 3\n`;
  await page.getByLabel("A file").fill(file);
  await button(page, "Show the difference").click();
  await page.getByText("max_retries: default (0) → 3").waitFor();
  assert.equal((await api("/connections/Imported")).status, 404, "looking changes nothing");
  await isAccessible(page);
  await button(page, "Apply it").click();
  await said(page, "The file is applied");
  assert.equal((await api("/connections/Imported")).max_retries, 3);
  const [download] = await Promise.all([page.waitForEvent("download"), link_(page, "Download this project as YAML").click()]);
  assert.match(fs.readFileSync(await download.path(), "utf8"), /Imported/);

  await go(page, "/audit");
  await page.getByText("connection.create").first().waitFor();
  await isAccessible(page);
  await go(page, "/alerts");
  await isAccessible(page);
}

async function overview(page, shot) {
  await page.goto(`${base}/`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.match(page.url(), /\/ui\/projects\/default$/);
  const flow = await api("/flow?range=hour");
  assert.equal(flow.total.delivered, 1);
  const told = await page.locator("svg.chart").first().getAttribute("aria-label");
  assert.match(told, new RegExp(`${flow.total.delivered} delivered, ${flow.total.failed} failed`));
  for (const range of ["24 h", "7 d", "1 h"]) {
    await page.getByRole("link", { name: range }).click();
    assert.equal(await page.locator("svg.chart").count(), 2);
  }
  await isAccessible(page);
  // By keyboard alone: the first stop leads past the navigation, and a menu closes by Escape.
  await page.reload();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  // A choice of colours stays, and needs no script.
  await page.locator("summary", { hasText: "Logged in as" }).click();
  await page.getByRole("button", { name: "Dark" }).click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await shot("overview-dark");
  // A phone: nothing is wider than the screen.
  await page.setViewportSize({ width: 390, height: 844 });
  for (const rest of ["", "/connections", "/endpoints", "/connections/new/rest", "/keys"]) {
    await go(page, rest);
    await fits(page);
  }
}

run(async (page, shot) => {
  await becomeOwner(page, link);
  await isAccessible(page);
  await connections(page, shot);
  await withoutScript(page);
  await topicsAndSecurity(page);
  await endpoints(page, shot);
  await settings(page);
  await overview(page, shot);
  // Nothing serious on what goes wrong either.
  await go(page, "/connections/rest/Nobody");
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  await isAccessible(page);
});
