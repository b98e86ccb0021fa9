// An agent that is being made: what the desk would make of the form is read again whenever somebody rests, and merged into it, so that
// what is being written stays. What somebody changed is theirs from then on (`data-read` goes), until they take it back.

import { inputOf } from "./acts.js";
import { merge } from "./merge.js";
import { localise } from "./times.js";

const PAUSE = 400;
const state = { timer: 0, turn: 0, form: null, kind: "" };
const at = (id) => document.getElementById(id);

// The last answer that was asked for is the one that counts.
async function read({ anew = false } = {}) {
  const { form } = state;
  const own = ++state.turn;
  const box = at("sketch");
  let answer;
  try {
    const body = JSON.stringify(inputOf(form));
    box.setAttribute("aria-busy", "true");
    const response = await fetch(form.dataset.sketch, { method: "POST", headers: { "content-type": "text/plain" }, body });
    if (response.redirected) return location.reload();
    answer = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("body > [data-state]");
  } catch (error) {
    answer = problem(error instanceof TypeError ? "The desk does not answer." : error.message);
  }
  if (own !== state.turn || !form.isConnected) return;
  box.removeAttribute("aria-busy");
  told(box, answer ?? problem("The desk does not answer."), anew);
}

function problem(text) {
  const box = document.createElement("div");
  box.dataset.state = "wrong";
  const words = Object.assign(document.createElement("p"), { textContent: text });
  words.setAttribute("role", "alert");
  box.append(words);
  return box;
}

// What is wrong is said above the fields, which stay as they are.
function told(box, answer, anew) {
  state.kind = answer.dataset.state;
  const fields = box.querySelector(":scope > [data-state=fine]");
  box.querySelector(":scope > [data-state=wrong]")?.remove();
  if (state.kind === "wrong" && fields) box.prepend(answer);
  else if (fields && state.kind === "fine" && !anew) {
    localise(answer);
    merge(fields, answer);
  } else {
    box.replaceChildren(answer);
    localise(box);
  }
  mark();
}

// What is not read yet is not made.
function mark() {
  const button = at("make-it");
  if (button) button.disabled = state.kind !== "fine";
}

function later() {
  clearTimeout(state.timer);
  state.kind = "";
  state.turn += 1;
  mark();
  state.timer = setTimeout(read, PAUSE);
}

function start() {
  const form = document.querySelector("form[data-sketch]");
  if (form && form === state.form) return mark();
  if (!form) return;
  Object.assign(state, { form, kind: at("sketch").firstElementChild?.dataset.state ?? "" });
  mark();
  // A browser that comes back to the page brings what was written in it before.
  const { description, template } = form.elements;
  if (description.value !== description.defaultValue || !template.options[template.selectedIndex].defaultSelected) later();
}

document.addEventListener("input", (event) => {
  if (!event.target.form?.dataset.sketch) return;
  event.target.closest("[data-read]")?.removeAttribute("data-read");
  later();
});
document.addEventListener("click", (event) => {
  const template = event.target.closest("[data-template]");
  const zone = event.target.closest("[data-my-zone]");
  if (template) {
    at("template").value = template.dataset.template;
    later();
  } else if (zone) {
    const field = at(zone.dataset.myZone);
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (event.target.closest("[data-as-read]")) {
    for (const field of at("sketch").querySelectorAll("[name]")) field.dataset.read = "";
    read({ anew: true });
  }
});
document.addEventListener("shown", start);
start();
