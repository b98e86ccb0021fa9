// The inbox: arrival, filters, keys, deciding alone and with others, and what happens when the desk goes away.

import { approve, check, invited, screens, signedCall, sleep, until } from "../desk.mjs";

// What the desk says when somebody has not shown for a while that they are there.
const LATE = { code: "forbidden", message: "this needs you to show that you are there", needs_presence: true };
const rows = (page) => page.locator("[data-row] .title").allTextContents();
const open = (page) => page.locator("article.request h2").textContent();
const state = async (desk, page, id) => (await signedCall(page, "desk_request_get", { request: id })).state;

// The first steps are ticked off by what happens, and go when they are known.
async function firstSteps({ desk, page }) {
  await page.getByText("Nothing waits for you").waitFor();
  const done = () => page.locator("#tour [data-done]").count();
  check((await done()) === 0, "the first steps are all to do");
  await screens(page, "first-steps");
  await desk.propose("first", "deal/0", { note: "zero" });
  await until("two are done", async () => (await done()) === 2);
  await page.getByText("update: deal/0").click();
  await page.locator("article.request").waitFor();
  await approve(page);
  await page.getByText("Nothing waits for you").waitFor();
  await until("all are done", async () => (await done()) === 3);
  check(true, "and are ticked off by what really happens");
  await page.getByRole("button", { name: "Hide this" }).click();
  await page.reload();
  check(await page.locator("#tour").isHidden(), "and stay hidden when somebody hides them");
}

async function arriving({ desk, page }) {
  await page.getByText("Nothing waits for you").waitFor();
  const begun = Date.now();
  await desk.propose("code", "deal/1", { note: "first" });
  await page.getByText("update: deal/1").waitFor();
  const took = Date.now() - begun;
  check(took < 10_000, `a new request is there without a reload (${took} ms with the call)`);
  check((await page.title()).startsWith("(1) "), "and counted in the title", await page.title());
  check((await page.locator("#count").textContent()) === "1", "and in the list of pages");
}

async function byKeyboard({ desk, page }) {
  for (let number = 2; number <= 6; number++) await desk.propose(`agent-${number}`, `deal/${number}`, { note: `number ${number}` });
  await until("six rows", async () => (await rows(page)).length === 6);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await until("the newest is open", async () => (await page.locator("article.request").count()) && (await open(page)) === "update: deal/6");
  await screens(page, "inbox");
  await page.keyboard.press("j");
  await until("j opens the next", async () => (await open(page)) === "update: deal/5");
  await page.keyboard.press("k");
  await until("k opens the one before", async () => (await open(page)) === "update: deal/6");
  await page.keyboard.press("a");
  await sleep(100);
  check((await rows(page)).length === 6, "a key that comes with the request itself approves nothing");
  await approve(page);
  await page.getByText("Approved").first().waitFor();
  await until("the next one is open", async () => (await open(page)) === "update: deal/5");
  check((await rows(page)).length === 5, "a approves, and the next request comes up");
  await page.keyboard.press("u");
  await page.getByText("Undone").waitFor();
  await until("it waits again", async () => (await rows(page)).includes("update: deal/6"));
  check(true, "u takes it back");
  await page.keyboard.press("r");
  await page.keyboard.type("too early");
  check((await page.getByLabel("Why, for the agent").inputValue()) === "too early", "r opens the form and puts the cursor into it; letters in it do nothing else");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  check(await page.getByRole("heading", { name: "Keys" }).isVisible(), "? shows the keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("deal/2");
  await page.keyboard.press("Enter");
  await until("the palette opens it", async () => (await open(page)) === "update: deal/2");
  check(true, "the palette finds a request");
  await page.keyboard.press("/");
  check(await page.evaluate(() => document.activeElement.name === "search"), "/ goes to the search");
  await page.keyboard.type("deal/4");
  await page.keyboard.press("Enter");
  await until("one row", async () => (await rows(page)).join() === "update: deal/4");
  check(page.url().includes("search=deal%2F4"), "and the search is an address");
  await page.goto(`${desk.url}/?requester=agent-3`);
  check((await rows(page)).join() === "update: deal/3", "filters by agent");
  await page.goto(`${desk.url}/?age=60`);
  await page.getByText("Nothing fits").waitFor();
  check(true, "and by age");
}

// A filter that somebody keeps is kept by the desk: another browser of the same person has it, and nobody else.
async function kept({ desk, page }) {
  await page.goto(`${desk.url}/?requester=agent-3&risk=low`);
  await page.getByRole("button", { name: "Keep this filter" }).click();
  const link = page.locator("#saved-filters").getByRole("link");
  await link.waitFor();
  check((await link.textContent()) === "Low, agent-3", "a filter is kept under a name made of it", await link.textContent());
  await screens(page, "inbox-kept");
  await page.goto(desk.url);
  await link.click();
  await until("one row", async () => (await rows(page)).join() === "update: deal/3");
  check(new URL(page.url()).searchParams.get("requester") === "agent-3", "and leads back to what it shows");
  check(!(await page.evaluate(() => Object.keys(localStorage).some((name) => name.includes("filter")))), "it is on the desk, not in the browser");
  await page.getByRole("button", { name: "Forget Low, agent-3" }).click();
  await until("it is forgotten", async () => (await link.count()) === 0);
  check(true, "until it is forgotten");
}

// An agent says what is there now. What it claims to be so already is approved with the rest, so it is shown.
async function claimed({ desk, page }) {
  const id = await desk.propose("claims", "deal/claimed", { note: "hello", iban: "MINE" }, { target_state: '{"iban":"MINE"}' });
  await page.goto(`${desk.url}/?request=${id}`);
  const shown = await page.locator(".diff tbody th").allTextContents();
  check(shown.join() === "/iban,/note", "nothing that is approved is kept from who approves it", shown);
  check((await page.locator(".diff thead").textContent()).includes("as the agent says"), "and what is there now is the agent's word");
}

async function editing({ desk, page }) {
  // What nobody touches stays as it is to the byte, whatever its name or its line ends.
  const change = '{"note":"as proposed","count":3,"text":"\\nfirst\\r\\nlast","__proto__":"mine"}';
  const id = await desk.propose("editor", "deal/edit", {}, { proposed_change: change });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.keyboard.press("e");
  await page.getByLabel("note").fill("as edited");
  await page.getByLabel("count").fill("{");
  await sleep(500);
  await page.getByRole("button", { name: "Approve as edited" }).click();
  await page.getByText("is not valid JSON").waitFor();
  await page.getByLabel("count").fill("4");
  await page.getByRole("button", { name: "Approve as edited" }).click();
  await page.getByText("Approved as you edited it").waitFor();
  const begun = await desk.call("editor", "cowork_begin", { proposal_id: id });
  const kept = JSON.stringify(begun.change);
  check(kept === '{"__proto__":"mine","count":4,"note":"as edited","text":"\\nfirst\\r\\nlast"}', "what was edited is what the agent may do, and nothing else changed", kept);
}

async function remembering({ desk, page }) {
  for (const number of [1, 2]) await desk.propose("often", `deal/often${number}`, { note: "the same" });
  const id = await desk.propose("often", "deal/often3", { note: "the same" });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.getByText("Approve more like it").click();
  await sleep(500);
  await page.getByRole("button", { name: "Approve, and draft a rule" }).click();
  await page.getByRole("heading", { name: "A rule was drafted" }).waitFor();
  check((await page.locator("#rule-text").textContent()).includes("effect: allow"), "an approval can draft a rule");
  check((await page.locator("#rule-list li").count()) > 0, "which shows what it would have matched");
  await screens(page, "rule");
  await page.getByRole("button", { name: "Close" }).click();
  const other = await desk.propose("often", "deal/often4", { note: "the same" });
  await page.goto(`${desk.url}/?request=${other}`);
  await page.getByText("How trust moved lately").click();
  check((await page.locator("#trust-lately li").first().textContent()).includes("by Ada, +0.02"), "what moved trust lately is shown with the request");
  await page.getByText("Approve more like it").click();
  await sleep(500);
  await page.getByRole("button", { name: "Approve, also for acts like it" }).click();
  await page.getByText("Approved, and acts like it for a while").waitFor();
  const { standing_approvals: standing } = await signedCall(page, "desk_standing_approval_list", {});
  check(standing.length === 1 && standing[0].agent === "often", "and one can stand for acts like it", standing);
}

async function talking({ desk, page }) {
  const id = await desk.propose("talker", "deal/ask", { note: "why not" });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.keyboard.press("q");
  await page.getByLabel("What you want to know").fill("Who asked for it?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByText("Asked; it comes back").waitFor();
  await desk.call("talker", "cowork_answer_question", { request_id: id, answer: "The customer, by telephone." });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.getByText("The customer, by telephone.").waitFor();
  check(true, "a question and its answer are shown with the request");
  await page.keyboard.press("s");
  await page.getByRole("button", { name: "Put off", exact: true }).click();
  await until("it is put off", async () => (await state(desk, page, id)) === "pending" && !(await rows(page)).includes("update: deal/ask"));
  await page.goto(`${desk.url}/?view=snoozed`);
  check((await rows(page)).join() === "update: deal/ask", "what is put off is in its own view");
}

async function many({ desk, page }) {
  await page.goto(desk.url);
  await desk.propose("many", "deal/m1", { note: 1 });
  await desk.propose("many", "deal/m2", { note: 2 });
  await until("both are there", async () => (await rows(page)).filter((title) => title.includes("deal/m")).length === 2);
  for (const target of ["deal/m1", "deal/m2"]) await page.getByLabel(`Select update: ${target}`).check();
  // What arrives meanwhile is not taken along, and does not lose what was selected.
  await desk.propose("many", "deal/m3", { note: 3 });
  await page.getByText("deal/m3").waitFor();
  await page.getByText("2 selected").waitFor();
  await page.getByRole("button", { name: "Approve selected" }).click();
  const listed = await page.locator("#confirm-list li").allTextContents();
  check(listed.join() === "update: deal/m2,update: deal/m1", "deciding many shows exactly what it decides", listed);
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Approve: 2 done").waitFor();
  await until("one is left", async () => (await rows(page)).filter((title) => title.includes("deal/m")).join() === "update: deal/m3");
  check(true, "and decides that");
}

async function together(all) {
  const { desk, page } = all;
  const id = await desk.propose("both", "deal/both", { note: "for two" });
  const other = await invited(all, "Grace", "--role", "approver", "--domain", "*");
  for (const one of [page, other.page]) await one.goto(`${desk.url}/?request=${id}`);
  await Promise.all([approve(page), approve(other.page)]);
  await until("it is decided", async () => (await state(desk, page, id)) === "approved");
  await sleep(500);
  const { events } = await page.evaluate((id) => fetch(`/api/desk_record_list?kind=request.approved&subject=request:${id}`).then((answer) => answer.json()), id);
  check(events.length === 1, "two people decide at once, and it is decided once", events.length);
  const third = await desk.propose("both", "deal/third", { note: "for one" });
  for (const one of [page, other.page]) await one.goto(`${desk.url}/?request=${third}`);
  await approve(page);
  await other.page.locator(".standing").getByText("approved by Ada").waitFor();
  check((await other.page.locator("[data-key=a]").count()) === 0, "a decision made elsewhere shows at once, and cannot be made again");
  const mine = await desk.propose("both", "deal/given", { note: "for Grace" });
  await page.goto(`${desk.url}/?request=${mine}`);
  await page.keyboard.press("d");
  await page.getByLabel("To whom").selectOption({ label: "Grace" });
  await page.getByRole("button", { name: "Give away", exact: true }).click();
  await page.getByText("Given away").waitFor();
  await page.goto(`${desk.url}/?assignee=Grace`);
  await page.getByText("for Grace").first().waitFor();
  check((await rows(page)).join() === "update: deal/given", "what was given away is found by who has it");
  await other.context.close();
}

// What needs two people, decided by one in an emergency: with a reason, the passphrase anew, and for all to see.
async function glass(all) {
  const { desk, page } = all;
  const other = await invited(all, "Mary", "--role", "approver", "--domain", "*");
  const settings = (more) => `rules:\n  - { name: two_look, match: { domain: [crm.*] }, effect: require_approval, quorum: 2, message: two people look }\n${more}`;
  const apply = (document) => signedCall(page, "desk_policy_apply", { document });
  await apply(settings(""));
  const id = await desk.propose("urgent", "deal/urgent", { note: "the site is down" });
  await page.goto(`${desk.url}/requests/${id}`);
  await page.locator(".standing", { hasText: "2 are missing" }).waitFor();
  check((await page.locator(`#glass-${id}`).count()) === 0, "there is no glass to break unless policy says so");
  await apply(settings("authority: { break_glass: owner }\n"));
  for (const one of [page, other.page]) await one.goto(`${desk.url}/requests/${id}`);
  check((await other.page.locator(`#glass-${id}`).count()) === 0, "and none for whoever policy does not name");
  await page.getByText("Break the glass").click();
  await page.getByRole("button", { name: "Approve alone" }).click();
  check(await page.evaluate(() => !document.getElementById("glass-reason").checkValidity()) && (await state(desk, page, id)) === "pending", "without a reason nothing is broken");
  await screens(page, "break-glass");
  // As it is when the passphrase was given a while ago.
  await page.route("**/api/desk_request_break_glass", (route) => route.fulfill({ status: 403, json: { error: LATE } }), { times: 1 });
  let asked = 0;
  page.on("request", (request) => (asked += request.url().endsWith("/api/desk_show_presence") ? 1 : 0));
  await page.getByLabel("Why nobody can be waited for").fill("The site is down, and nobody answers");
  await page.getByRole("button", { name: "Approve alone" }).click();
  await page.getByText("Approved by you alone; the others are told").waitFor();
  await until("it is approved", async () => (await state(desk, page, id)) === "approved");
  check(asked === 1, "the passphrase is asked for once more", asked);
  await page.goto(`${desk.url}/requests/${id}`);
  for (const one of [page, other.page]) {
    await one.locator(".standing", { hasText: "glass broken" }).waitFor();
    const said = await one.locator(".standing").textContent();
    check(said.includes("Ada decided this alone") && said.includes("Passed over:") && said.includes("Mary") && said.includes("nobody answers"), "everybody sees who did it, why, and who was passed over", said);
  }
  check((await page.locator(`#glass-${id}`).count()) === 0, "it is broken once");
  await apply("rules: []");
  await other.context.close();
}

async function handoffs({ desk, page }) {
  const packet = { domain: "billing", goal: "Pay what is owed", reason: "The invoice does not match.", context: "Order 44 says 3, the invoice 5.", attempted_actions: "Asked the supplier.", confidence: 0.3 };
  const { handoff_id: id } = await desk.call("billing", "cowork_handoff", packet);
  await page.goto(`${desk.url}/?kind=handoff&request=${id}`);
  for (const text of ["Pay what is owed", "Order 44 says 3, the invoice 5.", "Asked the supplier."]) await page.getByText(text).waitFor();
  await screens(page, "handoff");
  const late = await desk.call("billing", "cowork_handoff", { ...packet, reason: "Nobody answers", timeout_seconds: 1 });
  await page.goto(`${desk.url}/?kind=handoff`);
  await page.locator(`#row-${late.handoff_id}`).getByText("overdue").waitFor({ timeout: 20_000 });
  check(true, "a handoff that nobody answered in time stands out");
  await page.goto(`${desk.url}/?kind=handoff&request=${id}`);
  await page.keyboard.press("a");
  await page.getByLabel("What you decided").fill("The order is right.");
  await page.getByLabel("What the agent is to do").fill("Pay for 3.");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.getByText("Answered").waitFor();
  const { pending_instructions: told } = await desk.call("billing", "cowork_check_handoff", {});
  check(JSON.stringify(told).includes("Pay for 3."), "a handoff is answered, and the agent gets its instructions", told);
}

// Everything that hostile text could try, in every field that an agent writes.
async function hostile({ desk, page }) {
  const text = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1">"'\u202eevil\u200b\u2066 ${"long ".repeat(100)}`;
  const huge = `${text}${"x".repeat(100_000)}`;
  const id = await desk.propose("hostile", text, { note: huge, [text.slice(0, 60)]: text }, { reasoning: huge.slice(0, 30_000), action: text.slice(0, 100), domain: "crm.deals" });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.locator("article.request").waitFor();
  check(!(await page.evaluate(() => globalThis.owned)), "hostile text runs nothing");
  check((await page.locator("main script, main img").count()) === 0, "and makes no element");
  check((await page.locator("article.request").textContent()).includes("\\u{202e}"), "marks that turn text around are made visible");
  await screens(page, "hostile");
}

// An agent's request arrives while the list is scrolled: what is read stays where it is.
async function scrolled({ desk, page }) {
  for (let number = 0; number < 60; number++) await desk.propose(`scroll-${number % 30}`, `deal/s${number}`, { note: number });
  await page.goto(desk.url);
  await page.getByRole("link", { name: "Show more" }).waitFor();
  const row = page.getByText("update: deal/s30");
  await row.scrollIntoViewIfNeeded();
  const before = await row.boundingBox();
  // Not by the mouse, which would scroll there first.
  await page.getByRole("link", { name: "Show more" }).evaluate((link) => link.click());
  await until("more rows", async () => (await rows(page)).length > 50);
  await desk.propose("urgent", "deal/urgent", { note: "now" }, { priority: "urgent" });
  await page.getByText("update: deal/urgent").waitFor({ state: "attached" });
  const after = await row.boundingBox();
  check(Math.abs(before.y - after.y) < 2, "a list that grows above and below does not jump", [before.y, after.y]);
}

async function away({ desk, page }) {
  await page.goto(desk.url);
  const { port } = new URL(desk.url);
  await desk.halt();
  await page.getByText("The connection to the desk is lost").waitFor();
  check(true, "a lost connection is told");
  await desk.start(`127.0.0.1:${port}`);
  await desk.propose("back", "deal/back", { note: "after the restart" }, { priority: "urgent" });
  await page.getByText("update: deal/back").waitFor({ timeout: 20_000 });
  check(await page.getByText("The connection to the desk is lost").isHidden(), "and what was missed is caught up without a reload");
}

// The browser tells of a new request while nobody looks, once for all tabs.
async function notifying({ desk, page, context }) {
  await context.grantPermissions(["notifications"], { origin: desk.url });
  await page.goto(desk.url);
  await page.evaluate(() => {
    globalThis.told = [];
    globalThis.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, { body }) {
        globalThis.told.push(`${title}: ${body}`);
      }
    };
    Object.defineProperty(document, "hidden", { get: () => true });
  });
  await page.locator(".you summary").click();
  await page.getByRole("button", { name: "Notify me in this browser" }).click();
  await page.getByText("New requests are told by this browser").waitFor();
  await desk.propose("notified", "deal/notified", { note: "now" });
  const told = await until("it is told", () => page.evaluate(() => globalThis.told[0]));
  check(/^Deskmate: \d+\+? requests? waits? for you\.$/.test(told), "a new request is told by the browser", told);
}

async function tabs({ desk, page, context }) {
  const others = [];
  for (let number = 0; number < 9; number++) {
    const other = await context.newPage();
    await other.goto(desk.url);
    others.push(other);
  }
  await desk.propose("tabs", "deal/tabs", { note: "for all" }, { priority: "urgent" });
  for (const one of [page, ...others]) {
    await one.bringToFront();
    await one.getByText("update: deal/tabs").waitFor();
  }
  check(true, "ten tabs at once are kept up to date");
  await page.bringToFront();
  await page.close();
  await desk.propose("tabs", "deal/later", { note: "after one closed" }, { priority: "urgent" });
  await others[0].bringToFront();
  await others[0].getByText("update: deal/later").waitFor();
  check(true, "also when the one that followed for all was closed");
}

async function pausing({ desk, page }) {
  await page.goto(desk.url);
  await page.route("**/api/desk_pause", (route) => route.fulfill({ status: 403, json: { error: LATE } }), { times: 1 });
  await page.getByRole("button", { name: "Pause all" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("All agents are paused: every act").waitFor();
  const { mode } = await desk.call("paused", "cowork_propose", { domain: "crm.deals", action: "update", target: "deal/p", proposed_change: "{}", confidence: 0.9, reasoning: "no" });
  check(mode === "deny", "the kill switch denies every act at once", mode);
  await page.getByRole("button", { name: "Let agents go on" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Pause all" }).waitFor();
  check(true, "and is taken back");
}

export default async function (all) {
  for (const part of [firstSteps, arriving, byKeyboard, kept, claimed, editing, remembering, talking, many, handoffs, together, glass, hostile, scrolled, pausing, notifying, away, tabs]) await part(all);
}
