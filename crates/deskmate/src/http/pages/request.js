// One request: what would be done, why, and the two buttons. Every text of an agent is set as text, never as markup.

import { call, sentence } from "/assets/sign-in.js";

const id = location.pathname.split("/").pop();
const at = (name) => document.getElementById(name);
let shown = null;

function line(parent, kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  parent.append(element);
  return element;
}

function words(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function show(request) {
  shown = request;
  at("title").textContent = request.title ?? "This request was erased";
  const who = request.verified ? request.requester : `${request.requester} (nobody proved it)`;
  const waits = request.waits_for === "people" ? `waits until ${new Date(request.expires_at).toLocaleString()}` : request.state;
  at("standing").textContent = `${who}, ${request.kind} in ${request.domain}, risk ${request.risk}: ${waits}`;
  const details = at("details");
  details.replaceChildren();
  if (request.act) line(details, "p", `${request.act.action} ${request.act.target}`);
  for (const change of request.changes) {
    if ("old" in change) line(details, "pre", `- ${change.path}: ${words(change.old)}`).className = "old";
    if ("new" in change) line(details, "pre", `+ ${change.path}: ${words(change.new)}`).className = "new";
  }
  if (request.changes_cut) line(details, "p", "There are more changes than are shown; `deskmate inbox show --json` has them all.");
  if (request.reasoning) line(details, "p", `Why: ${request.reasoning}`);
  if (request.context) line(details, "pre", JSON.stringify(request.context, null, 2));
  for (const hit of request.hits) line(details, "p", `Rule ${hit.rule_id} of ${hit.policy}: ${hit.reason}`);
  if (request.trust) line(details, "p", `Trust ${request.trust.score.toFixed(2)} after ${request.trust.sample_size} decided proposals.`);
  if (request.quorum > 1) line(details, "p", `${request.approvals} of ${request.quorum} people have approved.`);
  at("decide").hidden = request.state !== "pending";
}

async function read() {
  const response = await fetch("/api/desk_request_get", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ request: id }),
  });
  const answer = await response.json();
  if (response.ok) return show(answer);
  at("standing").textContent = sentence(answer.error);
  if (response.status === 401) {
    const link = line(at("details"), "a", "Sign in");
    link.href = `/sign-in?next=${encodeURIComponent(location.pathname)}`;
  }
}

async function decide(decision) {
  const form = at("decide");
  const reason = form.elements.reason.value || undefined;
  const passphrase = form.elements.passphrase.value;
  form.elements.passphrase.value = "";
  const presence = await call("desk_show_presence", { passphrase });
  if (presence.error) throw new Error(sentence(presence.error));
  if (!presence.shown) throw new Error("The passphrase is wrong; nothing was decided.");
  const input = { request: id, reason };
  // What is approved is what was shown.
  if (decision === "approve") input.expected_digest = shown.digest;
  const answer = await call(`desk_request_${decision}`, input);
  if (answer.error) throw new Error(sentence(answer.error));
}

at("decide").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("alert").textContent = "";
  try {
    await decide(event.submitter.value);
  } catch (error) {
    at("alert").textContent = error.message;
  }
  await read();
});

await read();
