// The keyboard: letters do what the buttons that carry them do, j and k walk through lists, and the palette finds the rest.

import { showMany, toast, undoLast } from "./acts.js";

const at = (id) => document.getElementById(id);
let goes = 0;

function isWriting(element) {
  return element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

function isShown(element) {
  return element.checkVisibility?.() ?? element.offsetParent !== null;
}

// The next row; while a request is open beside the list, it is opened at once.
function walk(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row === document.activeElement);
  const open = rows.findIndex((row) => row.getAttribute("aria-current"));
  const from = now >= 0 ? now : open;
  const row = rows[Math.min(Math.max(from + step, 0), rows.length - 1)];
  row.focus();
  row.scrollIntoView({ block: "nearest" });
  if (open >= 0) row.click();
}

// The way back to a list that is shown as well is there for the key alone.
function press(key) {
  const target = [...document.querySelectorAll(`main [data-key="${CSS.escape(key)}"]`)].find((element) => key === "Escape" || isShown(element));
  if (target) use(target);
  return Boolean(target);
}

function use(target) {
  if (isWriting(target)) target.focus();
  else if (target.nodeName === "SUMMARY") {
    target.parentElement.open = true;
    target.parentElement.querySelector("textarea, input:not([type=hidden]), select, button")?.focus();
  } else target.click();
}

function select() {
  const row = document.activeElement.closest?.("li") ?? document.querySelector("[data-row][aria-current]")?.closest("li");
  const box = row?.querySelector("input[name=selected]");
  if (!box) return false;
  box.checked = !box.checked;
  showMany();
  return true;
}

function handle(key) {
  if (goes && Date.now() - goes < 1500) {
    goes = 0;
    const link = document.querySelector(`nav [data-go="${CSS.escape(key)}"]`);
    if (link) link.click();
    return Boolean(link);
  }
  switch (key) {
    case "j":
    case "k":
      walk(key === "j" ? 1 : -1);
      return true;
    case "x":
      return select();
    case "g":
      goes = Date.now();
      return true;
    case "u":
      if (!undoLast() && !press("u")) toast("There is nothing to undo.");
      return true;
    case "?":
      at("help").showModal();
      return true;
    default:
      return press(key);
  }
}

// What a button, a link or a part that opens is called.
function nameOf(element) {
  return (element.getAttribute("aria-label") ?? element.firstChild?.textContent ?? "").trim();
}

// What can be done on the open page. What is there more than once is not offered: its name does not say which is meant.
function deeds() {
  const shown = [...document.querySelectorAll("main :is(button, summary, a.button), .top form button, [data-notify]")];
  const named = shown.filter((element) => (isShown(element) || element.matches(".top *")) && !element.disabled).map((element) => [nameOf(element), element]);
  const times = new Map();
  for (const [name] of named) times.set(name, (times.get(name) ?? 0) + 1);
  return named.filter(([name]) => name && times.get(name) === 1);
}

// What the palette offers: the pages of the menu, what can be done here, the other pages, what is listed, and a search.
function commands(query) {
  const found = [];
  const offer = (label, run) => label.toLowerCase().includes(query.toLowerCase()) && found.push({ label, run });
  const pages = new Set();
  const offerPages = (selector) => {
    for (const link of document.querySelectorAll(selector)) {
      if (!pages.has(link.href)) offer(`Go to ${nameOf(link)}`, () => link.click());
      pages.add(link.href);
    }
  };
  offerPages(".top nav a, main nav.tabs a");
  for (const [name, element] of deeds()) offer(name, () => use(element));
  offerPages("#further a");
  for (const row of document.querySelectorAll("[data-row]")) offer(`Open ${row.querySelector(".title")?.textContent ?? row.textContent}`, () => row.click());
  if (query) found.push({ label: `Search the inbox for “${query}”`, run: () => location.assign(`/?${new URLSearchParams({ search: query, view: "all" })}`) });
  return found.slice(0, 60);
}

function startPalette() {
  const [dialog, input, list] = [at("palette"), at("palette-query"), at("palette-list")];
  let chosen = 0;
  let found = [];
  const show = () => {
    found = commands(input.value.trim());
    chosen = Math.min(chosen, Math.max(found.length - 1, 0));
    list.replaceChildren(
      ...found.map(({ label }, index) => {
        const item = Object.assign(document.createElement("li"), { textContent: label, role: "option", id: `command-${index}` });
        item.setAttribute("aria-selected", String(index === chosen));
        item.addEventListener("click", () => run(index));
        return item;
      }),
    );
    if (found.length) input.setAttribute("aria-activedescendant", `command-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const run = (index) => {
    dialog.close();
    found[index]?.run();
  };
  input.addEventListener("input", () => {
    chosen = 0;
    show();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(found.length, 1);
      show();
    } else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  });
  return () => {
    input.value = "";
    chosen = 0;
    show();
    dialog.showModal();
  };
}

export function start() {
  const openPalette = startPalette();
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-open=palette]")) {
      at("palette").close();
      openPalette();
    }
  });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog:modal")) return;
    if (isWriting(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    // A key that is held walks through a list, and does nothing else twice.
    if (event.repeat && !["j", "k"].includes(event.key)) return;
    if (handle(event.key)) event.preventDefault();
  });
}
