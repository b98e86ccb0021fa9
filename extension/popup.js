// The popup: what waits, jobs, and folders, each in a tab that is read when it is opened.

import { refreshBadge } from "./badge.js";
import { api, pairing } from "./desk.js";
import { showFolders } from "./folders.js";
import { showJobs } from "./jobs.js";
import { button, empty, tell } from "./view.js";
import { showWaiting } from "./waiting.js";

const SHOWS = { waiting: showWaiting, jobs: showJobs, folders: showFolders };
const tabs = [...document.querySelectorAll("[role=tab]")];

function open(tab) {
  tell("");
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    document.getElementById(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  const name = tab.getAttribute("aria-controls");
  SHOWS[name](document.getElementById(name));
}

function walk(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  next.focus();
  open(next);
}

async function start() {
  // The background sees the popup close by this, and counts again.
  api.runtime.connect({ name: "popup" });
  document.getElementById("settings").addEventListener("click", () => api.runtime.openOptionsPage());
  const paired = await pairing();
  if (!paired) {
    document.querySelector("[role=tablist]").hidden = true;
    const welcome = empty("Not paired yet", "Pair this browser with your desk once; then what agents ask for can be decided here.");
    welcome.append(button("Pair with a desk", () => api.runtime.openOptionsPage()));
    document.getElementById("waiting").replaceChildren(welcome);
    return;
  }
  document.getElementById("who").textContent = `${paired.name} · ${new URL(paired.address).host}`;
  for (const tab of tabs) {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", walk);
  }
  open(tabs[0]);
  refreshBadge();
}

start();
