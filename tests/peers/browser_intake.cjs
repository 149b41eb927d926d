// Somebody who takes requests in: channels and their services, topics, sources and where they forward to. Every form is sent, and each result is checked
// through the API and by a request from outside.
// Arguments: the link of the first start, a key of the API, and the address of a receiver that answers 200.
"use strict";

const { assert, run, becomeOwner, isAccessible, fits, tools } = require("./browser.cjs");

const [first, key, receiver] = process.argv.slice(2);
const { base, api, go, button, link, said } = tools(first, key);

async function services(page) {
  await go(page, "/services");
  await page.getByRole("heading", { name: "No service yet" }).waitFor();
  await isAccessible(page);
  await link(page, "New service").click();
  await isAccessible(page);
  await page.getByLabel("Name", { exact: true }).fill("orders");
  await page.getByLabel("Address").fill("ftp://nowhere");
  await button(page, "Create").click();
  await page.locator(".field-wrong", { hasText: "Address" }).waitFor();
  assert.deepEqual((await api("/services")).data, []);
  await page.getByLabel("Address").fill(`${receiver}/orders`);
  await button(page, "Create").click();
  await said(page, "orders is there");
  assert.equal((await api("/services/orders")).address, `${receiver}/orders`);
  await isAccessible(page);
  await button(page, "Ping").click();
  await said(page, "It can be reached");
  await link(page, "Settings").click();
  await page.getByLabel("Name", { exact: true }).fill("order-intake");
  await page.getByLabel("Sockets at most").fill("4");
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  assert.equal((await api("/services/order-intake")).pool_size, 4);
  await button(page, "Pause").click();
  await page.locator(".banner", { hasText: "Paused" }).waitFor();
  assert.equal((await api("/services/order-intake")).state.paused, true);
  await button(page, "Resume").click();
  await said(page, "resumed");
  await link(page, "Delivery queue").click();
  await page.getByRole("heading", { name: "Nothing waits" }).waitFor();
  await isAccessible(page);
  await go(page, "/services");
  await isAccessible(page);
}

async function channels(page, shot) {
  await go(page, "/channels");
  await page.getByRole("heading", { name: "No channel yet" }).waitFor();
  await isAccessible(page);
  await link(page, "New channel").click();
  await isAccessible(page);
  await link(page, "REST").click();
  await page.getByLabel("Name", { exact: true }).fill("Orders");
  await page.getByLabel("Service", { exact: true }).fill("order-intake");
  await page.getByLabel("Path", { exact: true }).fill("orders");
  await page.getByLabel("Method", { exact: true }).fill("POST PUT");
  await page.getByRole("tab", { name: "Delivery" }).click();
  await page.getByLabel("Use queue").selectOption({ label: "yes" });
  await isAccessible(page);
  await button(page, "Create").click();
  // The tab with what is wrong is the one that is shown.
  await page.getByRole("alert").getByText("Nothing was changed").waitFor();
  assert.equal(await page.getByLabel("Path", { exact: true }).getAttribute("aria-invalid"), "true");
  assert.equal(await page.getByLabel("Service", { exact: true }).inputValue(), "order-intake");
  await page.getByLabel("Path", { exact: true }).fill("/orders");
  await button(page, "Create").click();
  await said(page, "Orders is there");
  const made = await api("/channels/Orders");
  assert.deepEqual([made.type, made.service, made.url_path, made.use_queue], ["rest", "order-intake", "/orders", true]);
  assert.equal("timeout" in made, false);
  await page.getByText("curl -X POST").waitFor();
  await isAccessible(page);
  // A request from outside is accepted and run.
  const answer = await fetch(`${base}/orders`, { method: "POST", body: '{"order": 17}' });
  assert.deepEqual([answer.status, (await answer.json()).is_ok], [200, true]);
  const delivered = async () => (await api("/deliveries?connection=Orders&type=channel_rest&status=SUCCESS")).data.length;
  for (let tries = 0; tries < 100 && (await delivered()) === 0; tries += 1) await new Promise((next) => setTimeout(next, 100));
  assert.equal(await delivered(), 1);
  await page.reload();
  await page.locator("main svg.spark").waitFor();
  // Paused, it still accepts; its queue names method, path and service.
  await button(page, "Pause").click();
  await page.locator(".banner", { hasText: "Paused" }).waitFor();
  assert.equal((await fetch(`${base}/orders?from=shop`, { method: "PUT", body: "{}" })).status, 200);
  await link(page, "Delivery queue").click();
  const row = page.locator("tbody tr").first();
  assert.match(await row.innerText(), /PUT \/orders\?from=shop[\s\S]*service order-intake/);
  await isAccessible(page);
  await button(page, "Resume").click();
  await page.getByRole("heading", { name: "Nothing waits" }).waitFor();
  await page.locator("h1 a.over").click();
  await link(page, "Settings").click();
  await page.getByLabel("Name", { exact: true }).fill("Shop orders");
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  assert.equal((await api("/channels/Shop%20orders")).id, made.id);
  // Inactive: callers are asked to come again.
  await link(page, "Settings").click();
  await page.getByLabel("Active").uncheck();
  await button(page, "Save").click();
  await page.locator(".banner", { hasText: "Not active" }).waitFor();
  assert.equal((await fetch(`${base}/orders`, { method: "POST", body: "{}" })).status, 503);
  await isAccessible(page);

  // HL7 listens at a port of its own.
  await go(page, "/connections/new/channel_mllp");
  await page.getByLabel("Name", { exact: true }).fill("ADT");
  await page.getByLabel("Service", { exact: true }).fill("not-there-yet");
  await page.getByLabel("Address").fill("127.0.0.1:0");
  await button(page, "Create").click();
  const alert = page.getByRole("alert");
  if (await alert.count()) {
    // A port must be named.
    await page.getByLabel("Address").fill("127.0.0.1:39975");
    await button(page, "Create").click();
  }
  await said(page, "ADT is there");
  await page.getByText("no service of this name is there yet").waitFor();
  await isAccessible(page);
  await go(page, "/connections/new/channel_soap");
  await page.getByLabel("Name", { exact: true }).fill("Registry");
  await page.getByLabel("Service", { exact: true }).fill("order-intake");
  await page.getByLabel("Path", { exact: true }).fill("/soap/registry");
  await page.getByLabel("Operations").fill("Register: urn:register");
  await button(page, "Create").click();
  await said(page, "Registry is there");
  assert.equal((await api("/channels/Registry")).type, "soap");

  // The list, by its columns.
  await go(page, "/channels");
  const names = () => page.locator("tbody th a").allInnerTexts();
  assert.deepEqual(await names(), ["ADT", "Registry", "Shop orders"]);
  await link(page, "Name").click();
  await page.waitForURL(/sort=-name/);
  assert.deepEqual(await names(), ["Shop orders", "Registry", "ADT"]);
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
  await isAccessible(page);
  await shot("channels");
  await go(page, "/connections/channel_mllp/ADT/delete");
  await isAccessible(page);
  await link(page, "Keep things as they are").click();
  await link(page, "Delete").click();
  await button(page, "Delete it").click();
  await said(page, "ADT is deleted");
  assert.equal((await api("/channels/ADT")).status, 404);
}

/** With script switched off, each of them can be made, sorted and deleted. */
async function withoutScript(page) {
  const context = await page.context().browser().newContext({ javaScriptEnabled: false, storageState: await page.context().storageState() });
  const plain = await context.newPage();
  await go(plain, "/connections/new/channel_rest");
  await plain.getByLabel("Name", { exact: true }).fill("Plain");
  await plain.getByLabel("Service", { exact: true }).fill("order-intake");
  await plain.getByLabel("Path", { exact: true }).fill("/plain");
  await button(plain, "Create").click();
  await said(plain, "Plain is there");
  await go(plain, "/channels");
  await link(plain, "Waiting").click();
  await plain.waitForURL(/sort=-waiting/);
  await link(plain, "Plain").click();
  await link(plain, "Delete").click();
  await button(plain, "Delete it").click();
  await said(plain, "Plain is deleted");
  await go(plain, "/new-source");
  await plain.getByLabel("Name", { exact: true }).fill("Plain");
  await plain.getByLabel("Provider").selectOption("none");
  await button(plain, "Create").click();
  await plain.getByRole("heading", { name: "What Plain is reached by" }).waitFor();
  await link(plain, "I have copied it").click();
  await link(plain, "Delete").click();
  await button(plain, "Delete it").click();
  await said(plain, "The source is deleted");
  await context.close();
}

async function topics(page) {
  await go(page, "/new-topic");
  await page.getByLabel("Name", { exact: true }).fill("results");
  await button(page, "Create").click();
  await said(page, "results is there");
  await link(page, "results").click();
  await isAccessible(page);
  await link(page, "Publish a message").click();
  await page.getByLabel("Body").fill('{"result": 1}');
  await isAccessible(page);
  await button(page, "Publish").click();
  await said(page, "It is published");
  assert.equal((await api("/topics/results/messages")).data.length, 1);
  await link(page, "Delete the topic").click();
  await isAccessible(page);
  await button(page, "Delete it").click();
  await said(page, "deleted");
  assert.equal((await api("/topics/results")).status, 404);
}

async function sources(page, shot) {
  await go(page, "/sources");
  await page.getByRole("heading", { name: "No source yet" }).waitFor();
  await isAccessible(page);
  await link(page, "New source").click();
  await page.getByLabel("Name", { exact: true }).fill("Lab");
  await page.getByLabel("Provider").selectOption("twilio");
  await isAccessible(page);
  await button(page, "Create").click();
  await page.locator(".field-wrong", { hasText: "Public URL" }).waitFor();
  assert.deepEqual((await api("/sources")).data, []);
  await page.getByLabel("Provider").selectOption("hmac");
  await page.locator("summary", { hasText: "How it is signed" }).click();
  await page.getByLabel("Hmac header", { exact: true }).fill("X-Lab-Signature");
  await button(page, "Create").click();
  const path = await page.getByLabel("The address, behind that of this server").inputValue();
  const secret = await page.getByLabel("The secret").inputValue();
  assert.match(path, /^\/ingress\/in_/);
  await isAccessible(page);
  await link(page, "I have copied it").click();
  const page_ = await page.content();
  assert.ok(!page_.includes(path) && !page_.includes(secret), "they are shown once");
  const [made] = (await api("/sources")).data;
  assert.deepEqual([made.name, made.provider, made.hmacHeader], ["Lab", "hmac", "X-Lab-Signature"]);
  await page.getByText("goes nowhere").waitFor();
  await isAccessible(page);

  // Where it forwards to.
  await link(page, "New destination").click();
  await isAccessible(page);
  await button(page, "Create").click();
  await page.locator(".field-wrong", { hasText: "URL" }).waitFor();
  await page.getByLabel("Or sent to").selectOption("rest/Ledger");
  await button(page, "Create").click();
  await said(page, "is forwarded to Ledger");
  const [destination] = (await api("/destinations")).data;
  assert.deepEqual([destination.sourceId, destination.connection], [made.id, "Ledger"]);
  await page.getByRole("link", { name: "Settings of Ledger" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Books");
  await page.locator("summary", { hasText: "Its own terms" }).click();
  await page.getByLabel("Custom headers").fill("X-From: lab");
  await isAccessible(page);
  await button(page, "Save").click();
  await said(page, "The destination is changed");
  const changed = await api(`/destinations/${destination.id}`);
  assert.deepEqual([changed.name, changed.customHeaders], ["Books", { "X-From": "lab" }]);

  // One that is signed comes through, one that is not is shown as refused.
  const { createHmac } = require("node:crypto");
  const body = '{"result": "negative"}';
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const came = (headers) => fetch(`${base}${path}`, { method: "POST", headers, body });
  assert.equal((await came({ "X-Lab-Signature": signature })).status, 202);
  assert.equal((await came({ "X-Lab-Signature": "00" })).status, 401);
  const forwarded = async () => (await api("/forwards?status=SUCCESS")).data.length;
  for (let tries = 0; tries < 100 && (await forwarded()) === 0; tries += 1) await new Promise((next) => setTimeout(next, 100));
  assert.equal(await forwarded(), 1);
  await go(page, `/sources/${made.id}`);
  assert.match(await page.locator("dl.figures").innerText(), /Accepted\s+1[\s\S]*Refused\s+1/);
  await page.getByRole("region", { name: "Refused lately" }).first().waitFor();
  await isAccessible(page);
  await shot("source");

  // Forwarded again, after a question.
  await link(page, "Forward again").click();
  await page.getByLabel("Came in from (UTC)").fill("yesterday");
  await button(page, "Count them").click();
  await page.locator(".field-wrong", { hasText: "Came in from" }).waitFor();
  await page.getByLabel("Came in from (UTC)").fill("2020-01-01T00:00:00Z");
  await button(page, "Count them").click();
  await page.getByRole("heading", { name: "Forward 1 webhooks again, as 1 forwards?" }).waitFor();
  await isAccessible(page);
  assert.equal((await api("/forwards")).data.length, 1, "counting sends nothing");
  await button(page, "Forward 1").click();
  await said(page, "1 new forwards of 1 webhooks");
  assert.equal((await api("/forwards")).data.length, 2);

  // Off, another secret, another address, another name, and gone.
  await button(page, "Switch off").click();
  await said(page, "It is off");
  assert.equal((await came({ "X-Lab-Signature": signature })).status, 410);
  await button(page, "Switch on").click();
  await said(page, "It is on");
  await link(page, "New secret").click();
  await page.getByLabel("The former one counts for (s)").fill("0");
  await button(page, "Make a new secret").click();
  assert.notEqual(await page.getByLabel("The secret").inputValue(), secret);
  await link(page, "I have copied it").click();
  assert.equal((await came({ "X-Lab-Signature": signature })).status, 401);
  await link(page, "New address").click();
  await isAccessible(page);
  await button(page, "Make a new address").click();
  assert.notEqual(await page.getByLabel("The address, behind that of this server").inputValue(), path);
  await link(page, "I have copied it").click();
  await page.locator(".banner", { hasText: "The former address still opens" }).waitFor();
  await link(page, "Settings").click();
  await page.getByLabel("Name", { exact: true }).fill("Laboratory");
  await page.getByLabel("Description").fill("Results of the laboratory");
  await button(page, "Save").click();
  await said(page, "The settings are changed");
  const now = await api(`/sources/${made.id}`);
  assert.deepEqual([now.name, now.description, now.hmacHeader, now.topic], ["Laboratory", "Results of the laboratory", "X-Lab-Signature", made.topic]);
  await go(page, "/sources");
  await isAccessible(page);
  await link(page, "Laboratory").click();
  await page.getByRole("link", { name: "Delete Books" }).click();
  await button(page, "Delete it").click();
  await said(page, "The destination is deleted");
  await link(page, "Delete").click();
  await isAccessible(page);
  await button(page, "Delete it").click();
  await said(page, "The source is deleted");
  assert.deepEqual((await api("/sources")).data, []);
}

async function onAPhone(page) {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const rest of ["/channels", "/services", "/connections/channel_rest/Shop%20orders", "/sources", "/new-source", "/connections/new/channel_rest"]) {
    await go(page, rest);
    await fits(page);
  }
}

run(async (page, shot) => {
  await becomeOwner(page, first);
  await services(page);
  await channels(page, shot);
  await withoutScript(page);
  await topics(page);
  await sources(page, shot);
  await onAPhone(page);
});
