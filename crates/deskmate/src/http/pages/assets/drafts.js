// A draft of what is to be in force: judged by the desk whenever the text rests, with every problem leading to its place.

import { localise } from "./times.js";

const PAUSE = 400;
const KEPT = "deskmate-draft";
const state = { timer: 0, turn: 0, form: null, rulebook: "", kind: "" };
const at = (id) => document.getElementById(id);

// The last answer that was asked for is the one that counts.
async function judge(more = "") {
  const { form } = state;
  const own = ++state.turn;
  at("draft").setAttribute("aria-busy", "true");
  let response;
  try {
    response = await fetch(form.dataset.draft + more, { method: "POST", headers: { "content-type": "text/plain" }, body: form.elements.document.value });
  } catch {
    return told(own, null);
  }
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  const answer = parsed.querySelector("body > [data-state]");
  if (!answer && response.redirected) return location.reload();
  told(own, answer);
}

function told(own, answer) {
  if (own !== state.turn || !state.form.isConnected) return;
  const box = at("draft");
  box.removeAttribute("aria-busy");
  const silent = Object.assign(document.createElement("p"), { textContent: "The desk does not answer; the draft is not judged." });
  box.replaceChildren(answer ?? silent);
  localise(box);
  state.kind = answer?.dataset.state ?? "";
  mark();
}

// What the judgement means for the button, also after the page was merged, which takes the form back to what the desk sent.
function mark() {
  const button = at("apply");
  if (button) button.disabled = state.kind !== "tightens" && state.kind !== "loosens";
  if (state.kind === "loosens") state.form.dataset.confirm = "Put this in force? Some of it loosens, or may loosen, what agents may do.";
  else delete state.form.dataset.confirm;
}

// What one writes is kept in this tab, so that looking at another page does not lose it.
function keep() {
  const area = state.form.elements.document;
  if (area.value === area.defaultValue) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, area.value);
}

function later() {
  clearTimeout(state.timer);
  keep();
  state.kind = "";
  mark();
  state.timer = setTimeout(judge, PAUSE);
}

// Selects a line, from the column on, and brings it into view.
function goTo(line, column) {
  const area = state.form.elements.document;
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const text = lines[line - 1] ?? "";
  const from = start + Math.min([...text].slice(0, column - 1).join("").length, text.length);
  area.focus();
  area.setSelectionRange(from < start + text.length ? from : start, start + text.length);
  const height = parseFloat(getComputedStyle(area).lineHeight);
  area.scrollTop = Math.max(0, (line - 4) * height);
  area.scrollLeft = 0;
}

// A page with a draft came up, or what is in force changed beneath it.
function start() {
  const form = document.querySelector("form[data-draft]");
  if (form && form === state.form && form.dataset.rulebook === state.rulebook) return mark();
  if (!form) return;
  if (form !== state.form) form.elements.document.value = sessionStorage.getItem(KEPT) ?? form.elements.document.value;
  Object.assign(state, { form, rulebook: form.dataset.rulebook });
  judge();
}

document.addEventListener("input", (event) => event.target.form?.dataset.draft && later());
document.addEventListener("click", (event) => {
  const problem = event.target.closest("[data-line]");
  if (problem && state.form?.isConnected) goTo(Number(problem.dataset.line), Number(problem.dataset.column));
  const acts = event.target.closest("[data-acts]");
  if (acts) judge(`?acts=${acts.dataset.acts}`);
  if (event.target.closest("[data-reset-draft]")) {
    state.form.reset();
    keep();
    judge();
  }
});
document.addEventListener("done", (event) => {
  if (!event.target.dataset.draft) return;
  sessionStorage.removeItem(KEPT);
  judge();
});
document.addEventListener("shown", start);
start();
