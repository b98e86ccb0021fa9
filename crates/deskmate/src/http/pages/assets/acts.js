// What people do: forms that name an operation (`data-call`) are sent as signed calls. Presence is asked for when the desk
// needs it, what can be undone is offered as such, and every outcome is told.

import { refresh } from "./live.js";
import * as passkey from "./passkey.js";
import { call, deskNow, deskTime, sentence } from "./sign.js";

const at = (id) => document.getElementById(id);
const SECONDS = { told: 6, undo: 20 };
// How long a request has to be on the screen before it can be approved.
const SEEN_MS = 400;
const open = { digest: "", since: 0 };
// What takes the last act back: a call for each request that was decided in it. Whatever is done next replaces it.
let undoes = [];
let leaving = false;

// A mistake that is told in words of its own.
class Told extends Error {}

// Since when what would be approved is shown: a key or a click that was meant for the one before approves nothing.
function noteOpen() {
  const digest = document.querySelector("main [name=expected_digest]")?.value ?? "";
  if (digest !== open.digest) Object.assign(open, { digest, since: Date.now() });
}

function isUnseen(form) {
  const isApproval = ["desk_request_approve", "desk_request_break_glass"].includes(form.dataset.call);
  return isApproval && form.elements.expected_digest && (at("main").hasAttribute("aria-busy") || Date.now() - open.since < SEEN_MS);
}

// Tells something at the edge of the page, with at most one thing to do about it.
export function toast(text, { tone = "", act, label, seconds = SECONDS.told } = {}) {
  const box = document.createElement("div");
  box.className = `toast ${tone}`;
  box.append(Object.assign(document.createElement("span"), { textContent: text }));
  if (act) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: label, className: "quiet" });
    button.addEventListener("click", () => {
      box.remove();
      act();
    });
    box.append(button);
  }
  at("toasts").append(box);
  setTimeout(() => box.remove(), seconds * 1000);
}

// Opens a dialog and answers with what closed it.
function ask(dialog) {
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
    dialog.showModal();
  });
}

// Asks whether something is to be done, with what exactly, and why where that has to be said. Answers with the reason, or nothing.
export async function confirm(text, items = [], { why = false } = {}) {
  const reason = at("confirm-reason");
  at("confirm-text").textContent = text;
  at("confirm-why").hidden = reason.disabled = !why;
  reason.value = "";
  const list = document.createElement("ul");
  for (const item of items) list.append(Object.assign(document.createElement("li"), { textContent: item }));
  at("confirm-list").replaceChildren(...(items.length ? [list] : []));
  return (await ask(at("confirm"))) === "yes" ? { reason: reason.value } : undefined;
}

// Asks for the passphrase or a passkey until it is right or the person gives up.
async function showPresence() {
  const dialog = at("presence");
  const form = dialog.querySelector("form");
  const alert = dialog.querySelector("[role=alert]");
  dialog.querySelector("[data-passkey]").hidden = !passkey.isSupported();
  alert.textContent = "";
  for (;;) {
    form.elements.passphrase.value = "";
    const way = await ask(dialog);
    if (way === "") return false;
    const passphrase = form.elements.passphrase.value;
    form.elements.passphrase.value = "";
    try {
      const shown = way === "passkey" ? { passkey: await passkey.answer("presence", document.body.dataset.you) } : { passphrase };
      const answer = await call("desk_show_presence", shown);
      if (answer.shown) return true;
      alert.textContent = answer.error ? sentence(answer.error) : "The passphrase is wrong.";
    } catch {
      alert.textContent = "No passkey answered.";
    }
  }
}

// Makes a passkey for the person who is signed in.
async function addPasskey(form) {
  try {
    const { you } = document.body.dataset;
    const made = await passkey.make("add", you, new TextEncoder().encode(you), form.elements.note.value || "Deskmate");
    const answer = await act("desk_passkey_add", { ...made, note: form.elements.note.value });
    if (answer.error) throw new Error(sentence(answer.error));
    toast("The passkey was added");
    form.reset();
    await refresh();
  } catch (error) {
    toast(error.name === "NotAllowedError" ? "No passkey was made." : error.message, { tone: "alarm" });
  }
}

// A call that shows presence first where the desk says so.
export async function act(operation, input) {
  let answer = await call(operation, input);
  if (answer.error?.needs_presence && (await showPresence())) answer = await call(operation, input);
  return answer;
}

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function pairOf(line) {
  const at = line.indexOf("=");
  if (at < 1) throw new Told(`“${line}” is not of the form NAME=VALUE.`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

function valueOf(element) {
  const text = element.value;
  switch (element.dataset.as) {
    case "json":
      if (element.type === "checkbox") return element.checked;
      return text.trim() === "" ? undefined : JSON.parse(text);
    case "any":
      if (text.trim() === "") return undefined;
      return /^\s*[[{]/.test(text) ? JSON.parse(text) : text;
    case "value":
      try {
        return text === "" ? undefined : JSON.parse(text);
      } catch {
        return text;
      }
    case "choices":
      return [...element.querySelectorAll("input:checked")].map((box) => box.value);
    case "list":
      return text.split(/[\n,]/).map((item) => item.trim()).filter(Boolean);
    case "lines":
      return linesOf(text);
    case "pairs":
      return linesOf(text).length ? Object.fromEntries(linesOf(text).map(pairOf)) : undefined;
    case "later":
      return new Date(deskNow() + Number(text) * 60000).toISOString();
    case "moment":
      return text === "" ? undefined : new Date(text).toISOString();
    case "text":
      return text;
    default:
      return text === "" ? undefined : text;
  }
}

// Whether a field is as the page gave it.
function isUntouched(element) {
  if (element.type === "checkbox") return element.checked === element.defaultChecked;
  if (element.nodeName === "SELECT") return [...element.options].every((option) => option.selected === option.defaultSelected);
  return element.value === element.defaultValue;
}

const labelOf = (element) => element.labels?.[0]?.textContent ?? element.name;

// The input of the call: a name with a dot is a field of an object. A form that is marked `data-changed` sends only what
// somebody changed in it, one that is marked `data-whole` leaves nothing out, and no form sends what the desk itself read and nobody
// changed (`data-read`).
export function inputOf(form) {
  // Names are an agent's: none of them means anything to the script.
  const input = Object.create(null);
  for (const element of form.elements) {
    if (!element.name || element.disabled || "read" in element.dataset || (element.type === "radio" && !element.checked)) continue;
    if ("changed" in form.dataset && element.type !== "hidden" && isUntouched(element)) continue;
    let value;
    try {
      value = element.dataset.original !== undefined && isUntouched(element) ? JSON.parse(element.dataset.original) : valueOf(element);
    } catch (error) {
      element.focus();
      throw error instanceof Told ? error : new Error(`${labelOf(element)} is not valid JSON.`);
    }
    if (value === undefined && "whole" in form.dataset) {
      element.focus();
      throw new Told(`${labelOf(element)} is empty: write null if it is to be nothing.`);
    }
    // What is taken out is said as well, where something was set before.
    if (value === undefined && "empty" in element.dataset) value = element.dataset.as === "pairs" ? {} : null;
    if (value === undefined) continue;
    const dot = element.name.indexOf(".");
    if (dot < 0) input[element.name] = value;
    else (input[element.name.slice(0, dot)] ??= Object.create(null))[element.name.slice(dot + 1)] = value;
  }
  return input;
}

// Takes the last act back, and answers whether there was one.
export function undoLast() {
  if (!undoes.length) return false;
  undo(undoes);
  return true;
}

async function undo(calls) {
  if (calls === undoes) undoes = [];
  let done = 0;
  for (const [at, { operation, request, to }] of calls.entries()) {
    const answer = await act(operation, { request, ...(to && { to }) });
    if (!answer.error) {
      done += 1;
      continue;
    }
    toast(sentence(answer.error), { tone: "alarm" });
    if (answer.error.needs_presence) {
      // Who does not show that they are there is asked once; what is left can be undone later.
      undoes = calls.slice(at);
      break;
    }
  }
  if (done) toast(calls.length === 1 ? "Undone" : `Undone: ${done} of ${calls.length}`);
  refresh();
}

// Tells what was done, with its undo where there is one.
function tellDone(text, calls) {
  undoes = calls;
  toast(text, calls.length ? { act: () => undo(calls), label: "Undo", seconds: SECONDS.undo } : {});
}

// Forms that show their own problems are told of them.
function failed(form, error) {
  form.dispatchEvent(new CustomEvent("failed", { bubbles: true, detail: { error } }));
}

// An approval that did not approve yet, or nothing any more; a message that did not arrive.
function outcome({ approved, state, arrived, why }) {
  if (arrived === false) return `It did not arrive: ${why}`;
  if (approved !== false) return undefined;
  return state === "pending" ? "Your approval counts; more people are needed" : `Not approved: it is ${state}`;
}

// A form with a place for its answer (`data-answer`) tells it there, where it stays.
function tell(form, text, how) {
  if (!("answer" in form.dataset)) toast(text, how);
}

// Whether a page is being left because of what was done: what it showed may be gone, and that is no reason to read it again.
export function isLeaving() {
  return leaving;
}

async function submit(form) {
  const { call: operation, done = "Done", undo: reverse, undoTo: to, then, confirm: question } = form.dataset;
  const button = form.querySelector("button");
  if (button.disabled) return;
  if (isUnseen(form)) return toast("This came up just now: look at it first.");
  if (question && !(await confirm(question))) return;
  button.disabled = true;
  leaving = Boolean(then);
  try {
    // "In an hour" is an hour of the desk, whatever this machine's clock says.
    if (form.querySelector("[data-as=later]")) await deskTime();
    const input = inputOf(form);
    const answer = await act(operation, input);
    if (answer.error) {
      leaving = false;
      if (answer.error.code === "conflict" && form.elements.expected_digest) form.elements.expected_digest.dataset.refused = "";
      tell(form, sentence(answer.error), { tone: "alarm", seconds: 12 });
      failed(form, answer.error);
    } else if (then) {
      return location.assign(then.replace(/\{(\w+)\}/g, (_, field) => encodeURIComponent(answer[field] ?? "")));
    } else {
      const said = outcome(answer) ?? done;
      if (reverse && said === done) tellDone(said, [{ operation: reverse, request: input.request, to }]);
      else {
        undoes = [];
        tell(form, said, answer.arrived === false ? { tone: "alarm", seconds: 12 } : {});
      }
      form.dispatchEvent(new CustomEvent("done", { bubbles: true, detail: { answer } }));
      const details = form.closest("details");
      if (details) details.open = false;
    }
    await refresh();
  } catch (error) {
    leaving = false;
    tell(form, error.message, { tone: "alarm" });
    failed(form, error);
  } finally {
    button.disabled = false;
  }
}

// Decides all that is selected, after showing exactly what that is.
async function decideMany(button) {
  const chosen = [...document.querySelectorAll("input[name=selected]:checked")];
  const { many: operation, word } = button.dataset;
  if (!operation) return unselect(chosen);
  // What is decided is what was listed, whatever the page shows by then.
  const listed = chosen.map((box) => {
    const { digest, requester, risk } = box.dataset;
    return { request: box.value, digest, requester, risk, title: box.closest("li").querySelector(".title").textContent };
  });
  const lines = listed.map(({ title, requester, risk }) => `${title} · ${requester} · risk ${risk}`);
  const isRejection = operation === "desk_request_reject";
  const confirmed = await confirm(`${word} these ${listed.length}?`, lines, { why: isRejection });
  if (!confirmed) return;
  const undoable = [];
  let done = 0;
  for (const { request, digest, title } of listed) {
    const answer = await act(operation, { request, expected_digest: digest, ...(isRejection && { reason: confirmed.reason }) });
    const problem = answer.error ? sentence(answer.error) : outcome(answer);
    if (problem) {
      toast(`${title}: ${problem}`, { tone: "alarm", seconds: 12 });
      // Who does not show that they are there is asked once, not for each that is left.
      if (answer.error?.needs_presence) break;
      continue;
    }
    done += 1;
    if (answer.undoable && !isRejection) undoable.push({ operation: "desk_request_undo", request });
  }
  const failed = listed.length - done;
  tellDone(`${word}: ${done} done${failed ? `, ${failed} not` : ""}`, undoable);
  unselect(chosen);
  await refresh();
}

function unselect(boxes) {
  for (const box of boxes) box.checked = false;
  showMany();
}

export function showMany() {
  const bar = at("many");
  if (!bar) return;
  const count = document.querySelectorAll("input[name=selected]:checked").length;
  bar.hidden = count === 0;
  at("many-count").textContent = `${count} selected`;
}

function sayWherePasskeysWork() {
  for (const hint of document.querySelectorAll("[data-no-passkey]")) hint.hidden = passkey.isSupported();
}

// What is written twice is the same, or the browser says so where it was written.
function compare({ target }) {
  const again = target.form?.querySelector("[data-same]");
  again?.setCustomValidity(again.value === at(again.dataset.same).value ? "" : "The two differ.");
}

export function start() {
  noteOpen();
  document.addEventListener("shown", noteOpen);
  sayWherePasskeysWork();
  document.addEventListener("shown", sayWherePasskeysWork);
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.call) {
      event.preventDefault();
      submit(event.target);
    } else if ("addPasskey" in event.target.dataset) {
      event.preventDefault();
      addPasskey(event.target);
    }
  });
  document.addEventListener("input", compare);
  document.addEventListener("change", (event) => event.target.name === "selected" && showMany());
  document.addEventListener("click", (event) => {
    const many = event.target.closest("[data-many]");
    if (many) decideMany(many);
    const opens = event.target.closest("[data-open]");
    if (opens) at(opens.dataset.open)?.showModal?.();
    if (event.target.closest("[data-passkey]")) at("presence").close("passkey");
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close("");
  });
  at("presence").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    at("presence").close("given");
  });
}
