// Everything that strangers can write, on every page that shows it: nothing of it runs, no page is wider than the screen, and none is endless.
// The pages are those that can be reached by links from the overview, and those of the given deliveries.
// Arguments: the link of the first start, and the ids of deliveries.
"use strict";

const { assert, run, becomeOwner, fits, tools } = require("./browser.cjs");

const [first, ...deliveries] = process.argv.slice(2);
const { base, go, button } = tools(first, "");
/** Of a page, in bytes; bodies are shown in part. */
const PAGE_BYTES_MAX = 6_000_000;
const PAGES_MAX = 400;

/** What no page of ours has among what it shows. */
const FOREIGN = "main img, main script, main iframe, main object, main embed, main link, main style, main [onerror], main [onload], main [onclick], main [style]";

async function isHarmless(page, address) {
  const answer = await page.goto(address);
  const kind = answer.headers()["content-type"] ?? "";
  assert.match(kind, /^text\/html/, address);
  assert.ok(answer.status() < 500, `${address}: ${answer.status()}`);
  const bytes = (await answer.body()).length;
  assert.ok(bytes <= PAGE_BYTES_MAX, `${address} has ${bytes} bytes`);
  assert.equal(await page.evaluate(() => window.hacked), undefined, address);
  assert.equal(await page.locator(FOREIGN).count(), 0, address);
  // Characters that turn others round would make a name look like another one.
  await fits(page);
  return answer.status();
}

/** Links that only show something. */
async function links(page) {
  const found = await page.locator("a[href]").evaluateAll((all) => all.filter((one) => !one.hasAttribute("download")).map((one) => one.href));
  return found.filter((href) => href.startsWith(`${base}/ui/`) && !/\/export|\/download|#/.test(href)).map((href) => href.split("#")[0]);
}

run(async (page, shot) => {
  await becomeOwner(page, first);
  const project = page.url();
  const seen = new Set();
  const ways = ["", "/body", "/body?as=raw", "/body?as=raw&all=true", "/body?all=true", "/edit", "/answers", "/discard", "/forward", "/resend", "/queue"];
  const queue = [project, ...deliveries.flatMap((id) => ways.map((way) => `${project}/deliveries/${id}${way}`))];
  const kindsOfQuery = new Map();
  while (queue.length > 0 && seen.size < PAGES_MAX) {
    const address = queue.shift();
    if (seen.has(address)) continue;
    // Of pages that differ in their query alone, a few are enough.
    const plain = address.split("?")[0];
    kindsOfQuery.set(plain, (kindsOfQuery.get(plain) ?? 0) + 1);
    if (kindsOfQuery.get(plain) > 5) continue;
    seen.add(address);
    await page.setViewportSize(seen.size % 2 ? { width: 1280, height: 900 } : { width: 390, height: 844 });
    await isHarmless(page, address);
    queue.push(...(await links(page)));
  }
  assert.ok(seen.size > 80, `${seen.size} pages`);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${project}/deliveries/${deliveries[0]}`);
  await shot("hostile-delivery");
  await page.goto(`${project}/connections`);
  await shot("hostile-connections");

  // What is refused is told with what was typed, harmlessly.
  await go(page, "/connections/new/rest");
  const name = "\"><img src=x onerror=\"window.hacked = true\">/";
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Host").fill("javascript:window.hacked = true");
  await button(page, "Create").click();
  await page.getByRole("alert").first().waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), name);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator(FOREIGN).count(), 0);
  await fits(page);
  console.log(`${seen.size} pages`);
});
