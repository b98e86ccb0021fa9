// The pictures of the README: a desk with a day's work on it, as people see it.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { LAUNCH, chromium, claim, signedCall, sleep, startDesk } from "./desk.mjs";

const into = process.argv[2];
mkdirSync(into, { recursive: true });

const POLICY = `policies:
  - id: crm-write
    description: What agents may change in the CRM
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000, reason: "Deals above 500,000 are made by people" }
      - { field: stage, constraint: enum, values: [open, offer, won, lost], reason: "These are our stages" }
mappings:
  - { agent_id: "*", domain: crm.deals, policy_id: crm-write }
`;

// Agents that are trusted more and less, by what was decided on their work.
async function history(desk, page) {
  await signedCall(page, "desk_policy_apply", { document: POLICY });
  for (let turn = 0; turn < 14; turn++) {
    const id = await desk.propose("scout", `deal/${100 + turn}`, { next_step: "call back" }, { confidence: 0.6 + (turn % 4) / 10 });
    if (turn === 5 || turn === 6) await signedCall(page, "desk_request_reject", { request: id, reason: "They asked us to wait.", type: "missing_context" });
    else await signedCall(page, "desk_request_approve", { request: id });
  }
  for (let turn = 0; turn < 5; turn++) {
    const id = await desk.propose("mailer", `mail/${turn}`, { subject: "Your offer" }, { domain: "mail.outbox", action: "send" });
    await signedCall(page, "desk_request_approve", { request: id });
  }
}

async function waiting(desk) {
  await desk.propose("scout", "deal/118", { amount: 48000, stage: "offer", next_step: "send the offer" }, { confidence: 0.82, reasoning: "The customer accepted the price on the telephone and wants it in writing today." });
  await desk.propose("mailer", "mail/21", { to: "sales@example.org", subject: "Your offer", body: "Dear Ms Field,\n\nattached is the offer we spoke about." }, { domain: "mail.outbox", action: "send", priority: "high", confidence: 0.9, reasoning: "The offer is ready and was asked for." });
  await desk.propose("bookkeeper", "invoice/44", { status: "paid" }, { domain: "billing", confidence: 0.55, reasoning: "The bank shows the money." });
  await desk.call("bookkeeper", "cowork_handoff", { domain: "billing", goal: "Pay what is owed", reason: "The invoice does not match the order", context: "Order 44 says 3 pieces, the invoice 5.", attempted_actions: "Compared both; asked the supplier, who does not answer.", confidence: 0.3, priority: "high" });
  for (let turn = 0; turn < 4; turn++) await desk.propose("scout", `deal/${120 + turn}`, { next_step: "call back next week" }, { confidence: 0.7 });
}

async function talk(desk) {
  const { thread } = await desk.call("scout", "bridge_send_message", { to: "mailer", content: "Deal 118 is agreed. Can you prepare the offer?" });
  await desk.call("mailer", "bridge_send_message", { to: "scout", content: "It is in the outbox and waits for Ada.", thread });
  await desk.call("scout", "bridge_create_task", { to: "mailer", title: "Write the offer for deal 118", priority: "high" });
  await desk.call("mailer", "bridge_claim_task", {});
  await desk.call("scout", "bridge_create_task", { to: "bookkeeper", title: "Check the invoices of October" });
}

const desk = await startDesk();
const browser = await chromium.launch(LAUNCH);
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await claim(page, desk);
  await history(desk, page);
  await waiting(desk);
  await talk(desk);
  const shoot = async (name, address, { scheme = "light", size = { width: 1280, height: 800 } } = {}) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize(size);
    await page.goto(`${desk.url}${address}`);
    await sleep(400);
    await page.screenshot({ path: join(into, `${name}.png`) });
  };
  const { requests } = await signedCall(page, "desk_request_list", {});
  const offer = requests.find((request) => request.title.includes("deal/118")).request;
  await shoot("inbox", `/?request=${offer}`);
  await shoot("inbox-dark", `/?request=${offer}`, { scheme: "dark" });
  await shoot("inbox-phone", "/", { size: { width: 380, height: 760 } });
  await shoot("trust", "/trust?agent=scout&domain=crm.deals");
  await shoot("record", "/record");
  await shoot("policies", "/policies");
} finally {
  await browser.close();
  await desk.stop();
}
