// What the desk answers in words, beside the form (`data-answer` names the box): it stays until the next answer, with ways to what it
// speaks of. A refusal is told there as well, because a toast goes away.

import { sentence } from "./sign.js";
import { visible } from "./visible.js";

const PAGES = { requestId: ["/requests/", "The request that waits"], runId: ["/runs/", "The run"] };

function boxOf(form) {
  return document.getElementById(form.dataset.answer ?? "");
}

function tell(form, text, answer = {}) {
  const box = boxOf(form);
  if (!box) return;
  const words = Object.assign(document.createElement("p"), { textContent: visible(text), className: "words" });
  const ways = Object.entries(PAGES).filter(([field]) => typeof answer[field] === "string");
  const links = ways.map(([field, [page, name]]) => Object.assign(document.createElement("a"), { href: page + encodeURIComponent(answer[field]), textContent: name }));
  const line = Object.assign(document.createElement("p"), { className: "row" });
  line.append(...links);
  box.replaceChildren(words, ...(links.length ? [line] : []));
  box.scrollIntoView({ block: "nearest" });
}

// What was answered to something else is out of date once something more is done.
function forget() {
  for (const form of document.querySelectorAll("form[data-answer]")) boxOf(form)?.replaceChildren();
}

document.addEventListener("submit", ({ target }) => target.dataset.call && forget(), true);
document.addEventListener("done", ({ target, detail: { answer } }) => answer.message && tell(target, answer.message, answer));
document.addEventListener("failed", ({ target, detail: { error } }) => tell(target, error.code ? sentence(error) : error.message));
