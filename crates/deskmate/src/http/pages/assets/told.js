// What follows a call that went well: a form is emptied, what is shown once is shown, and what was made is opened.

import { toast } from "./acts.js";
import { localise } from "./times.js";
import { visible } from "./visible.js";

const at = (id) => document.getElementById(id);

// `{name}` in a text is that field of the answer.
function filled(text, answer, encode = (value) => value) {
  return text.replace(/\{(\w+)\}/g, (_, name) => encode(answer[name] ?? ""));
}

function showOnce(template, answer, large) {
  const text = filled(template, answer);
  at("once").classList.toggle("large", large);
  at("once-until").dateTime = answer.expires_at;
  localise(at("once"));
  at("once-value").value = text.startsWith("/") ? location.origin + text : text;
  at("once").addEventListener("close", () => (at("once-value").value = ""), { once: true });
  at("once").showModal();
  at("once-value").select();
}

// A rule that was drafted from an approval, and what it would have let pass before.
function showRule({ yaml, would_have_matched: matched, looked_at: looked }) {
  at("rule-text").textContent = visible(yaml);
  at("rule-matched").textContent = `Of ${looked} earlier acts it would have matched ${matched.length}${matched.length ? ":" : "."}`;
  at("rule-list").replaceChildren(
    ...matched.slice(0, 20).map(({ request, title, state }) => {
      const item = document.createElement("li");
      item.append(Object.assign(document.createElement("a"), { href: `/requests/${request}`, textContent: visible(title ?? "erased") }), `, ${state}`);
      return item;
    }),
  );
  at("rule").showModal();
}

// What is in a field, or in any other element.
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.value ?? element.textContent);
    toast("Copied");
  } catch {
    if (element.select) element.select();
    else getSelection().selectAllChildren(element);
    toast("This browser does not let pages copy: press Ctrl or Cmd C.");
  }
}

function open(address) {
  const link = Object.assign(document.createElement("a"), { href: address, hidden: true });
  link.dataset.inPlace = "";
  document.body.append(link);
  link.click();
  link.remove();
}

document.addEventListener("done", ({ target: form, detail: { answer } }) => {
  const { once, opens, reset, rule } = form.dataset;
  if (rule !== undefined && answer.rule) showRule(answer.rule);
  if (reset !== undefined) form.reset();
  if (once) showOnce(once, answer, "large" in form.dataset);
  if (opens) open(filled(opens, answer, encodeURIComponent));
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(at(button.dataset.copy));
});
