// Every page of somebody who is signed in: brings its parts together.

import * as acts from "./acts.js";
import "./agents.js";
import "./answers.js";
import "./drafts.js";
import "./follow.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import { merge } from "./merge.js";
import "./record.js";
import { sentence } from "./sign.js";
import "./sketch.js";
import { localise } from "./times.js";
import "./told.js";
import "./tools.js";

const at = (id) => document.getElementById(id);

// Shows an address in place, without losing what is on the screen. Answers whether that went well, or is no longer wanted
// because somebody went on meanwhile.
let turn = 0;
let asked = 0;
let merged = 0;
async function show(address) {
  const own = turn;
  const number = ++asked;
  let response;
  let text;
  try {
    response = await fetch(address, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(live.SILENT) });
    if (response.status >= 500 || response.status === 429) return unread();
    text = await response.text();
  } catch {
    return unread();
  }
  connection(true, "page");
  const parsed = new DOMParser().parseFromString(text, "text/html");
  // Reading and merging are two works, between which the browser may do what somebody wants of it.
  await new Promise((resolve) => setTimeout(resolve));
  // What is gone because of what was just done is no news: the page that follows is on its way.
  if (own !== turn || number < merged || (!response.ok && acts.isLeaving())) return true;
  if (!("topics" in parsed.body.dataset)) return false;
  merged = number;
  localise(parsed);
  document.title = parsed.title;
  document.dispatchEvent(new Event("showing"));
  merge(document.body, parsed.body);
  if (live.tellWaiting() && live.isLeading()) announce(document.body.dataset.count);
  acts.showMany();
  document.dispatchEvent(new Event("shown"));
  return true;
}

// The desk does not answer: what is on the screen stays, says so, and is read again.
function unread() {
  connection(false, "page");
  live.again();
  return true;
}

// Pages that cannot be shown in place, such as the one to sign in, are opened as any other.
async function go(address, { replace = false } = {}) {
  turn += 1;
  const own = turn;
  // Until the other page is there, nothing of this one is decided.
  at("main").setAttribute("aria-busy", "true");
  history[replace ? "replaceState" : "pushState"](null, "", address);
  if (!(await show(address))) location.reload();
  else if (own === turn) at("main").removeAttribute("aria-busy");
}

// What the desk does not answer: the page that was asked for last, its news, or both.
const lost = new Set();

function connection(up, what = "news") {
  if (up) lost.delete(what);
  else lost.add(what);
  const banner = at("connection");
  banner.hidden = lost.size === 0;
  banner.textContent = lost.size === 0 ? "" : "The connection to the desk is lost. What you see may be out of date; it is tried again.";
}

// A new request is told by the browser, where the person allowed it, and only once for all tabs. It leads to the inbox; whoever has
// that open already finds it as they left it.
function announce(count) {
  if (!document.hidden || globalThis.Notification?.permission !== "granted") return;
  const body = count === "1" ? "1 request waits for you." : `${count} requests wait for you.`;
  try {
    const told = new Notification("Deskmate", { body, tag: "deskmate", renotify: true, icon: document.querySelector("link[rel=icon]").href });
    told.onclick = () => {
      told.close();
      window.focus();
      if (location.pathname !== "/") go("/");
    };
  } catch {
    // Chrome for Android lets pages tell nothing by themselves; the count in the title still does.
  }
}

async function allowNotifications() {
  const answer = await globalThis.Notification?.requestPermission();
  acts.toast(answer === "granted" ? "New requests are told by this browser from now on." : "This browser does not allow notifications for the desk.");
}

// Keeps what is looked for now, under a name made of it. The desk keeps it, so it is there in every browser.
async function keepFilter(form) {
  const { age, ...filter } = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  if (age) filter.older_than_minutes = Number(age);
  const chosen = [...form.elements].filter((element) => element.name && element.value !== "");
  const name = chosen.map((element) => element.selectedOptions?.[0].textContent ?? element.value).join(", ");
  if (!name) return acts.toast("There is nothing to keep: choose a filter first.");
  const answer = await acts.act("desk_filter_keep", { name: name.slice(0, 100), filter });
  acts.toast(answer.error ? sentence(answer.error) : "Kept", answer.error ? { tone: "alarm" } : {});
  await live.refresh();
}

// What somebody has hidden stays so in this browser.
function hideDismissed() {
  for (const button of document.querySelectorAll("[data-dismiss]")) at(button.dataset.dismiss).hidden = localStorage.getItem(`deskmate-hides-${button.dataset.dismiss}`) === "yes";
}

function filterAddress(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return query.size ? `${location.pathname}?${query}` : location.pathname;
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-notify]")) allowNotifications();
  const dismiss = event.target.closest("[data-dismiss]");
  if (dismiss) {
    localStorage.setItem(`deskmate-hides-${dismiss.dataset.dismiss}`, "yes");
    hideDismissed();
  }
  if (event.target.closest("[data-save-filter]")) keepFilter(event.target.closest("form"));
  const link = event.target.closest("a[data-in-place]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.href);
});
document.addEventListener("submit", (event) => {
  if (!("filters" in event.target.dataset)) return;
  event.preventDefault();
  go(filterAddress(event.target));
});
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-filters]");
  if (form && event.target.nodeName === "SELECT") go(filterAddress(form));
});
// After a decision the next request that waits comes up, so that a list is worked through without a hand on the mouse.
document.addEventListener("done", (event) => {
  if (!("next" in event.target.dataset)) return;
  const rows = [...document.querySelectorAll("[data-row]")];
  const open = rows.findIndex((row) => row.getAttribute("aria-current"));
  const next = rows[open + 1] ?? rows[open - 1];
  if (open >= 0) go(next ? next.href : location.pathname, { replace: true });
});
addEventListener("popstate", () => {
  turn += 1;
  show(location.href).then((shown) => shown || location.reload());
});
document.addEventListener("shown", hideDismissed);

localise(document);
hideDismissed();
acts.start();
keys.start();
live.tellWaiting();
live.follow(async () => (await show(location.href)) || acts.isLeaving() || location.reload(), connection);
