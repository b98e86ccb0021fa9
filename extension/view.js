// What pages are made of. Everything is made as elements and text nodes; nothing that somebody wrote is ever read as HTML.

import { api, call, pairing } from "./desk.js";

// An element with attributes, handlers of events, and what is in it.
export function make(name, attributes = {}, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...content.flat(Infinity).filter((part) => part !== undefined && part !== null && part !== false && part !== ""));
  return element;
}

// Marks that turn or hide text are shown as what they are.
const HIDDEN = /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
export const visible = (text) => String(text).replace(HIDDEN, (mark) => (mark === "\n" || mark === "\t" ? mark : `\\u{${mark.codePointAt(0).toString(16)}}`));

// Ids of people are for programs; others are called by their names.
let people;
export async function nameOf(kind, id) {
  if (kind !== "person") return id;
  people ??= call("desk_person_list", {}).then(
    (answer) => new Map(answer.people.map(({ person, name }) => [person, name])),
    () => new Map(),
  );
  return (await people).get(id) ?? id;
}

// What somebody wrote: in a line, in paragraphs, and with its spaces and lines.
export const said = (text) => make("bdi", { class: "said" }, visible(text));
export const words = (text) => make("p", { class: "words" }, said(text));
export const block = (text) => make("pre", { class: "block", tabindex: "0" }, visible(text));
export const valueOf = (value) => block(typeof value === "string" ? value : JSON.stringify(value, null, 2));

// A text in which lines were taken out and put in.
export function diffOf(text) {
  const line = (one) => make(one.startsWith("+") ? "ins" : one.startsWith("-") ? "del" : "span", {}, `${visible(one)}\n`);
  return make("pre", { class: "block lines", tabindex: "0" }, text.trimEnd().split("\n").map(line));
}

export const spaced = (name) => String(name).replaceAll("_", " ");

const TONES = {
  good: ["approved", "done", "executing", "running", "write"],
  warning: ["pending", "ambiguous", "medium", "partly", "skipped", "waiting"],
  alarm: ["rejected", "failed", "high", "critical", "unclear", "expired"],
};

export function badge(word, text = spaced(word)) {
  const tone = Object.keys(TONES).find((tone) => TONES[tone].includes(word)) ?? "";
  return make("span", { class: `badge ${tone}`.trim() }, text);
}

export function time(at) {
  const moment = new Date(at);
  const today = moment.toDateString() === new Date().toDateString();
  const near = today ? { hour: "2-digit", minute: "2-digit" } : { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  return make("time", { datetime: at, title: moment.toLocaleString() }, moment.toLocaleString(undefined, near));
}

export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  return `${(bytes / 1000 ** unit).toLocaleString(undefined, { maximumFractionDigits: unit ? 1 : 0 })} ${units[unit]}`;
}

export const part = (title, ...content) => make("section", { class: "part" }, make("h3", {}, title), ...content);
export const empty = (title, text) => make("div", { class: "empty" }, make("h2", {}, title), make("p", {}, text));
export const button = (text, click, kind = "") => make("button", { type: "button", class: kind, click }, text);

// A page of the desk in a tab of its own.
export async function deskLink(path, text) {
  const { address } = await pairing();
  return make("a", { href: address + path, target: "_blank", rel: "noopener" }, text);
}

// Tells what was done, also to those who do not see it.
export function tell(text) {
  document.getElementById("told").textContent = text;
}

// What went wrong, and what to do about it.
export function problem(fault, again) {
  const pairs = ["unpaired", "unauthenticated"].includes(fault.code) && !document.body.classList.contains("options");
  return make(
    "div",
    { class: "problem", role: "alert" },
    make("p", {}, visible(fault.message)),
    pairs && button("Pair with a desk", () => api.runtime.openOptionsPage()),
    !pairs && again && button("Try again", again, "quiet"),
  );
}

// Fills a place with what some work makes of it; says that it is under way, and what went wrong.
export async function fill(place, work) {
  const hadFocus = place.contains(document.activeElement);
  place.setAttribute("aria-busy", "true");
  place.replaceChildren(make("p", { class: "hint loading" }, "Loading …"));
  try {
    place.replaceChildren(...[await work()].flat(Infinity).filter(Boolean));
  } catch (fault) {
    place.replaceChildren(problem(fault, () => fill(place, work)));
  } finally {
    place.removeAttribute("aria-busy");
  }
  // Whoever pressed something that is gone now goes on from here by keyboard.
  if (hadFocus && !place.contains(document.activeElement)) {
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }
}

// Runs what a button does: not twice at a time, and with what went wrong in the place beside it.
export async function run(pressed, place, work) {
  const buttons = [...(pressed.closest("form, .acts") ?? pressed.parentElement).querySelectorAll("button")];
  place.replaceChildren();
  for (const one of buttons) one.disabled = true;
  try {
    await work();
  } catch (fault) {
    place.replaceChildren(problem(fault));
  } finally {
    for (const one of buttons) one.disabled = false;
  }
}
