// The form of an operation: its answer, what it wrote into the record, and what went wrong, beside the form.

import { sentence, signedAt } from "./sign.js";
import { visible } from "./visible.js";

const TRIES = 60;
const PAUSE = 250;
// Fields of answers that name something, and where its page is.
const PAGES = { proposal_id: "/requests/", handoff_id: "/requests/", request_id: "/requests/", request: "/requests/", task_id: "/case/task/", message_id: "/case/message/", job: "/case/job/" };
const MODES = { act: "It may be done alone.", suggest: "A person decides.", escalate: "A person takes it over or decides.", deny: "It must not be done." };

const at = (id) => document.getElementById(id);

function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: visible(text), ...more });
}

function links(answer) {
  return Object.entries(PAGES)
    .filter(([field]) => typeof answer[field] === "string" && answer[field])
    .map(([field, page]) => element("a", `Look at the ${field.replace(/_id$/, "")}`, { href: page + encodeURIComponent(answer[field]) }));
}

// What this very call wrote: the browser signed it, and the record keeps that with each event. Nothing, as long as it is not sealed.
async function written(operation, at) {
  const query = new URLSearchParams({ actor: document.body.dataset.you, limit: 20 });
  for (let tried = 0; tried < TRIES; tried++) {
    const { events = [] } = await fetch(`/api/desk_record_list?${query}`).then((answer) => answer.json(), () => ({}));
    const own = events.filter(({ signed }) => {
      const [, path, , moment] = signed?.text.split("\n") ?? [];
      return path === `/api/${operation}` && moment === at;
    });
    if (own.length) return own.reverse();
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  return [];
}

function item(event) {
  const entry = document.createElement("li");
  entry.append(element("a", event.kind, { href: `/record/${event.seq}` }), ` ${visible(event.subject)}`);
  return entry;
}

async function done(form, answer) {
  const { call: operation } = form.dataset;
  const box = at(`answer-${operation}`);
  const parts = [element("h2", "Answer")];
  const mode = answer.now?.mode ?? answer.mode;
  if (MODES[mode]) parts.push(element("p", `The desk's decision: ${mode}. ${MODES[mode]}`, { className: "decision" }));
  if (Array.isArray(answer.lines)) {
    const list = document.createElement("ul");
    list.append(...answer.lines.map((line) => element("li", String(line))));
    parts.push(list);
  }
  const named = links(answer);
  if (named.length) {
    const line = element("p", "", { className: "row" });
    line.append(...named);
    parts.push(line);
  }
  parts.push(element("pre", JSON.stringify(answer, null, 2), { className: "block", tabIndex: 0 }));
  box.replaceChildren(...parts);
  box.scrollIntoView({ block: "nearest" });
  if (!("writes" in form.dataset)) return;
  const events = await written(operation, signedAt(answer));
  // Meanwhile it may have been called again.
  if (!parts[0].isConnected) return;
  const list = document.createElement("ul");
  list.append(...events.map(item));
  box.append(element("h3", events.length ? "What it wrote into the record" : "Nothing of it is in the record yet"), list);
}

function problem(form, text, field) {
  at(`problem-${form.dataset.call}`).textContent = visible(text);
  for (const input of form.elements) input.removeAttribute("aria-invalid");
  const wrong = field && form.elements[field];
  if (!wrong?.focus) return;
  wrong.setAttribute("aria-invalid", "true");
  wrong.focus();
}

document.addEventListener(
  "submit",
  ({ target }) => {
    if (!("tool" in target.dataset)) return;
    problem(target, "");
    at(`answer-${target.dataset.call}`).replaceChildren();
  },
  true,
);
document.addEventListener("done", ({ target, detail }) => "tool" in target.dataset && done(target, detail.answer));
document.addEventListener("failed", ({ target, detail: { error } }) => {
  if ("tool" in target.dataset) problem(target, error.code ? sentence(error) : error.message, error.field);
});
