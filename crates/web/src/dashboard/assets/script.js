// What pages do beyond what they do without it: local times, live parts, boxes that select all. Everything works when this never loads.
"use strict";

/** The local time beside UTC, in the title of each time. */
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime()) && !time.title.includes("·")) time.title += " · " + at.toLocaleString() + " here";
  }
}

/** Fetches the page anew and puts its live parts in place of ours, unless somebody is at work in them. */
const LIVE_EVERY_MS = 5000;
/** The same on a page that is told of changes: for its relative times, and for what it is not told of. */
const TOLD_EVERY_MS = 30_000;
/** What somebody has opened, ticked or chosen: it would be lost. */
const CHOSEN = "details[open], input[type=checkbox]:checked, input[type=radio]:checked:not([checked])";
let fetching = false;
let again = false;
let told = false;
let fetchedAt = Date.now();

async function refresh() {
  const parts = document.querySelectorAll("[data-live]");
  if (document.hidden || parts.length === 0) return;
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  again = false;
  fetchedAt = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { "X-Postrider-Live": "1" }, redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const name = CSS.escape(part.dataset.live);
      const next = fresh.querySelector(`[data-live="${name}"]`);
      const atWork = part.contains(document.activeElement) || part.querySelector(CHOSEN);
      if (next && !atWork && next.innerHTML !== part.innerHTML) {
        part.replaceChildren(...next.childNodes);
        localTimes(part);
      }
    }
    document.documentElement.removeAttribute("data-stale");
  } catch {
    document.documentElement.setAttribute("data-stale", "");
  } finally {
    fetching = false;
    if (again) refresh();
  }
}

function refreshInTime() {
  if (Date.now() - fetchedAt >= (told ? TOLD_EVERY_MS : LIVE_EVERY_MS)) refresh();
}

/** Where the page says what it watches, the server says when that has changed; asking by itself goes on beside it, less often. */
function watch() {
  const watched = document.querySelector("[data-watch]");
  if (!watched || !watched.dataset.watch || !("EventSource" in window)) return;
  const source = new EventSource(watched.dataset.watch);
  source.addEventListener("changed", refresh);
  source.addEventListener("open", () => { told = true; });
  source.addEventListener("error", () => { told = false; });
  addEventListener("pagehide", () => source.close());
}

/** A box that ticks all boxes of its table. */
function selectAll(event) {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.matches("[data-all]")) return;
  for (const other of box.closest("table").querySelectorAll("tbody input[type=checkbox]")) other.checked = box.checked;
}

/** The schedule is drawn anew as its settings are typed. */
const DRAW_AFTER_MS = 250;

function drawSchedule() {
  const form = document.querySelector("form[data-schedule]");
  if (!form) return;
  const place = form.querySelector("#schedule");
  const summary = form.querySelector("[data-summary='On failure']");
  form.querySelectorAll("[data-no-script]").forEach((button) => { button.hidden = true; });
  let waiting = 0;
  let latest = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const fields = new URLSearchParams();
      for (const [name, value] of new FormData(form)) {
        if (name !== "csrf" && typeof value === "string" && value.length < 2000) fields.append(name, value);
      }
      const asked = ++latest;
      const answer = await fetch(`${form.dataset.schedule}&${fields}`).catch(() => null);
      if (!answer || !answer.ok || asked !== latest) return;
      const drawn = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      const sentence = drawn.querySelector("[data-on-failure]");
      if (sentence && summary) summary.textContent = sentence.textContent;
      sentence?.remove();
      place.replaceChildren(...drawn.childNodes);
    }, DRAW_AFTER_MS);
  });
}

/** Parts of a form one at a time; without this they stand below each other. */
function tabs() {
  const list = document.querySelector("[data-tabs]");
  if (!list) return;
  const links = [...list.querySelectorAll("a")];
  const panels = links.map((link) => document.getElementById(link.hash.slice(1)));
  list.setAttribute("role", "tablist");
  const choose = (chosen, focus) => {
    links.forEach((link, index) => {
      link.setAttribute("aria-selected", String(index === chosen));
      link.tabIndex = index === chosen ? 0 : -1;
      panels[index].hidden = index !== chosen;
    });
    if (focus) links[chosen].focus();
  };
  links.forEach((link, index) => {
    link.setAttribute("role", "tab");
    link.setAttribute("aria-controls", panels[index].id);
    panels[index].setAttribute("role", "tabpanel");
    link.addEventListener("click", (event) => { event.preventDefault(); choose(index, false); });
    link.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) choose((index + step + links.length) % links.length, true);
    });
  });
  // A field that the browser refuses must be seen.
  list.closest("form").addEventListener("invalid", (event) => {
    const at = panels.findIndex((panel) => panel.contains(event.target));
    if (at >= 0) choose(at, false);
  }, true);
  choose(Number(list.dataset.tabs) || 0, false);
}

/** A secret that is shown once is selected as soon as somebody goes to it. */
function selectOnFocus(event) {
  if (event.target instanceof HTMLInputElement && event.target.matches("[data-select]")) event.target.select();
}

/** On a phone the navigation begins folded. */
function foldNavigation() {
  const fold = document.querySelector(".side-fold");
  if (fold && matchMedia("(max-width: 60rem)").matches) fold.open = false;
}

/** One menu at a time; Escape closes it. */
function closeMenus(event) {
  const isEscape = event.type === "keydown" && event.key === "Escape";
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (isEscape) menu.querySelector("summary").focus();
    if (isEscape || (event.type === "click" && !menu.contains(event.target))) menu.open = false;
  }
}

localTimes(document);
drawSchedule();
tabs();
document.addEventListener("focusin", selectOnFocus);
foldNavigation();
document.addEventListener("change", selectAll);
document.addEventListener("click", closeMenus);
document.addEventListener("keydown", closeMenus);
document.addEventListener("visibilitychange", refresh);
watch();
setInterval(refreshInTime, LIVE_EVERY_MS);
