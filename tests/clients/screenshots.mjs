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
      - name: large_deals
        when: has(args.amount) && args.amount > 40000
        effect: require_approval
        severity: high
        message: Offers above 40,000 are looked at by a person
  - id: mail-send
    description: What leaves the house
    rules:
      - name: outside
        when: has(args.to) && !string(args.to).endsWith('@example.org')
        effect: require_approval
        message: Mail to others is read before it is sent
mappings:
  - { agent_id: "*", domain: crm.deals, policy_id: crm-write }
  - { agent_id: "*", domain: mail.outbox, policy_id: mail-send }
`;

// The same, stricter: what somebody tries before putting it in force.
const DRAFT = POLICY.replace("max: 500000", "max: 30000").replace("above 500,000", "above 30,000");

// Agents that have to prove who they are, as on a desk that is in use.
async function register(desk, page) {
  const tokens = {};
  for (const [agent, note] of [["scout", "Keeps the deals"], ["mailer", "Writes to customers"], ["bookkeeper", "Pays invoices"]]) tokens[agent] = (await signedCall(page, "desk_agent_add", { agent, note })).token;
  const { call } = desk;
  desk.call = (agent, operation, input) => call(tokens[agent], operation, input);
}

// Agents that are trusted more and less, by what was decided on their work.
async function history(desk, page) {
  await signedCall(page, "desk_policy_apply", { document: POLICY });
  for (let turn = 0; turn < 14; turn++) {
    const id = await desk.propose("scout", `deal/${100 + turn}`, { amount: 9000 + 2500 * turn, next_step: "call back" }, { confidence: 0.6 + (turn % 4) / 10 });
    if (turn === 5 || turn === 6) await signedCall(page, "desk_request_reject", { request: id, reason: "They asked us to wait.", type: "missing_context" });
    else await signedCall(page, "desk_request_approve", { request: id });
  }
  for (let turn = 0; turn < 5; turn++) {
    const id = await desk.propose("mailer", `mail/${turn}`, { subject: "Your offer" }, { domain: "mail.outbox", action: "send" });
    await signedCall(page, "desk_request_approve", { request: id });
  }
}

async function waiting(desk) {
  const before = { amount: 42000, stage: "open", next_step: "call back" };
  const offer = { amount: 48000, stage: "offer", next_step: "send the offer" };
  await desk.propose("mailer", "mail/21", { to: "field@example.com", subject: "Your offer", body: "Dear Ms Field,\n\nattached is the offer we spoke about." }, { domain: "mail.outbox", action: "send", priority: "high", confidence: 0.9, reasoning: "The offer is ready and was asked for." });
  await desk.propose("bookkeeper", "invoice/44", { status: "paid" }, { domain: "billing", confidence: 0.55, reasoning: "The bank shows the money." });
  for (let turn = 0; turn < 4; turn++) await desk.propose("scout", `deal/${120 + turn}`, { next_step: "call back next week" }, { confidence: 0.7 });
  const handoff = {
    domain: "billing",
    goal: "Pay what is owed to the supplier of order 44",
    reason: "The invoice does not match the order, and the supplier does not answer",
    context: "Order 44 says 3 pieces, the invoice 5. The delivery note is signed for 3. The supplier was written to twice.",
    state: "Nothing is paid. The invoice is due on Friday.",
    attempted_actions: JSON.stringify(["compared the order with the invoice", "read the delivery note", "asked the supplier by mail, twice"]),
    ruled_out: ["paying for 3 pieces only: the invoice has no single prices"],
    confidence: 0.3,
    priority: "high",
  };
  const { handoff_id: handed } = await desk.call("bookkeeper", "cowork_handoff", handoff);
  const asked = await desk.propose("scout", "deal/118", offer, { target_state: JSON.stringify(before), confidence: 0.82, priority: "high", reasoning: "The customer accepted the price on the telephone and wants it in writing today.", reversibility: "Until the offer is sent, the deal can be set back." });
  return { handed, asked };
}

async function talk(desk) {
  const { thread } = await desk.call("scout", "bridge_send_message", { to: "mailer", content: "Deal 118 is agreed. Can you prepare the offer? The customer wants it today." });
  await desk.call("mailer", "bridge_send_message", { to: "scout", content: "It is in the outbox and waits for Ada. The price list of October was in it; I took the one of November.", thread });
  await desk.call("scout", "bridge_send_message", { to: "mailer", content: "Good. Tell me when it is out, then I set the deal to offer.", thread });
  await desk.call("bookkeeper", "bridge_send_message", { to: "Ada", content: "The invoice of order 44 does not match; I handed it over to you.", priority: "high" });
  const task = (from, input) => desk.call(from, "bridge_create_task", input).then(({ task_id: id }) => id);
  const offer = await task("scout", { to: "mailer", title: "Write the offer for deal 118", priority: "high" });
  await desk.call("mailer", "bridge_claim_task", { task_id: offer, lease_seconds: 3600 });
  await desk.call("mailer", "bridge_add_task_note", { task_id: offer, note: "The text is done; the prices are missing.", percent: 60 });
  await task("scout", { to: "mailer", title: "Send the offer for deal 118", depends_on: [offer] });
  await task("scout", { to: "bookkeeper", title: "Check the invoices of October" });
  await task("mailer", { to: "scout", title: "Find out who signs at the customer's", priority: "urgent" });
  const asks = await task("scout", { to: "bookkeeper", title: "Write off what nobody pays" });
  const { lease } = await desk.call("bookkeeper", "bridge_claim_task", { task_id: asks, lease_seconds: 3600 });
  await desk.call("bookkeeper", "bridge_update_task", { task_id: asks, status: "input_needed", result: "From which amount on?", fence: lease.fence });
  for (const title of ["Collect the telephone numbers of the fair", "Sort the leads of October"]) {
    const id = await task("mailer", { to: "scout", title });
    await desk.call("scout", "bridge_claim_task", { task_id: id });
    await desk.call("scout", "bridge_update_task", { task_id: id, status: "completed", result: "Done." });
  }
  return thread;
}

const desk = await startDesk();
const browser = await chromium.launch(LAUNCH);
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await claim(page, desk);
  await register(desk, page);
  await history(desk, page);
  const { handed, asked } = await waiting(desk);
  const thread = await talk(desk);
  const shoot = async (name, address, { scheme = "light", size = { width: 1280, height: 800 }, ready = async () => {} } = {}) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize(size);
    await page.goto(`${desk.url}${address}`);
    await ready();
    await sleep(400);
    await page.screenshot({ path: join(into, `${name}.png`) });
  };
  await shoot("inbox", `/?request=${asked}`, { size: { width: 1280, height: 1100 } });
  await shoot("inbox-dark", `/?request=${asked}`, { scheme: "dark" });
  await shoot("inbox-phone", "/", { size: { width: 380, height: 760 } });
  await shoot("handoff", `/?request=${handed}`, { size: { width: 1280, height: 1000 } });
  await shoot("trust", "/trust?agent=scout&domain=crm.deals");
  await shoot("record", "/record");
  await shoot("tasks", "/tasks?view=board");
  await shoot("messages", `/messages?thread=${thread}`);
  await shoot("policies", "/policies/edit", {
    size: { width: 1280, height: 1100 },
    ready: async () => {
      await page.getByLabel("The policies, mappings and settings").fill(DRAFT);
      await page.locator("#draft tbody tr").first().waitFor();
    },
  });
} finally {
  await browser.close();
  await desk.stop();
}
