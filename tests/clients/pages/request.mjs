// One request, beside the inbox and on a page of its own: what it shows, changing it, talking about it, and deciding with others.

import { LATE, approve, check, hidden, invited, rows, screens, signedCall, sleep, state, until } from "../desk.mjs";

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
  // What is emptied is not left out behind the back of who edits.
  await page.getByLabel("count").fill("");
  await page.getByRole("button", { name: "Approve as edited" }).click();
  await page.getByText("count is empty: write null if it is to be nothing").waitFor();
  check((await state(desk, page, id)) === "pending", "a field that is emptied approves nothing");
  await page.getByLabel("count").fill("4");
  await page.getByRole("button", { name: "Approve as edited" }).click();
  await page.getByText("Approved as you edited it").waitFor();
  const begun = await desk.call("editor", "cowork_begin", { proposal_id: id });
  const kept = JSON.stringify(begun.change);
  check(kept === '{"__proto__":"mine","count":4,"note":"as edited","text":"\\nfirst\\r\\nlast"}', "what was edited is what the agent may do, and nothing else changed", kept);
  // What has no fields is edited as a whole.
  const list = await desk.propose("editor", "deal/list", {}, { proposed_change: '["first","second"]' });
  await page.goto(`${desk.url}/?request=${list}`);
  await page.keyboard.press("e");
  await page.getByLabel("All of it").fill('["first"]');
  await sleep(500);
  await page.getByRole("button", { name: "Approve as edited" }).click();
  await page.getByText("Approved as you edited it").waitFor();
  const { change: left } = await desk.call("editor", "cowork_begin", { proposal_id: list });
  check(JSON.stringify(left) === '["first"]', "a list is edited as a whole", left);
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
  check((await page.locator("#toasts").getByRole("button", { name: "Undo" }).count()) === 1, "and can be undone as any other");
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
  await page.keyboard.press("u");
  await until("it waits again", async () => (await state(desk, page, other)) === "pending");
  const { standing_approvals: left } = await signedCall(page, "desk_standing_approval_list", {});
  check(left.every(({ revoked_at: ended }) => ended), "until it is undone, which ends both", left);
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
  const waits = async () => (await signedCall(page, "desk_request_get", { request: id })).waits_for;
  const ask = async () => {
    await page.goto(`${desk.url}/?request=${id}`);
    await page.keyboard.press("q");
    await page.getByLabel("What you want to know").fill("And when?");
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.getByText("Asked; it comes back").waitFor();
    await until("it waits for the answer", async () => (await waits()) === "requester" && !(await rows(page)).includes("update: deal/ask"));
  };
  await ask();
  await page.keyboard.press("u");
  await until("it waits for people", async () => (await waits()) === "people" && (await rows(page)).includes("update: deal/ask"));
  check(true, "u takes a question back");
  await ask();
  await page.goto(`${desk.url}/?view=asked`);
  check((await rows(page)).join() === "update: deal/ask", "what waits for an answer is in its own view");
  await page.goto(`${desk.url}/requests/${id}`);
  await page.getByRole("button", { name: "Do not wait for the answer" }).click();
  await until("it waits for people", async () => (await waits()) === "people");
  check(true, "and where no answer comes, it is back in the inbox");
  await page.goto(`${desk.url}/?request=${id}`);
  await page.keyboard.press("s");
  await page.getByRole("button", { name: "Put off", exact: true }).click();
  await until("it is put off", async () => (await state(desk, page, id)) === "pending" && !(await rows(page)).includes("update: deal/ask"));
  await page.goto(`${desk.url}/?view=snoozed`);
  check((await rows(page)).join() === "update: deal/ask", "what is put off is in its own view");
  await page.goto(`${desk.url}/requests/${id}`);
  await page.keyboard.press("d");
  await page.getByText("Nobody else decides in crm.deals").waitFor();
  check((await page.locator("#delegate-to").count()) === 0, "who is alone is told that there is nobody to give it to");
}

// Everything that one decides by, on the request's own page.
async function judged({ desk, page }) {
  const rule = "rules:\n  - { name: careful, match: { domain: [crm.*] }, effect: require_approval, message: A person looks at every deal }\n";
  const applied = await signedCall(page, "desk_policy_apply", { document: rule });
  if (applied.error) throw new Error(JSON.stringify(applied));
  const before = await desk.propose("judged", "deal/judged", { billing_address: "Elsewhere 1" });
  await signedCall(page, "desk_request_reject", { request: before, reason: "the customer said no" });
  const id = await desk.propose("judged", "deal/judged", { billing_address: "Elsewhere 2" }, { reversibility: "The old address can be set again.", confidence: 0.65 });
  await page.goto(`${desk.url}/requests/${id}`);
  const said = (selector, options) => page.locator(selector, options).first().textContent();
  check((await said(".request header .meta")).includes("risk high"), "a request's page tells its risk", await said(".request header .meta"));
  check(/^Waits for a person until .*\d/.test(await said(".standing")), "until when it waits", await said(".standing"));
  check((await said(".facts div", { hasText: "The agent is sure" })).includes("65 %"), "how sure the agent is");
  const hit = await said(".hits li");
  check(hit.includes("A person looks at every deal") && hit.includes("rule careful"), "which rule asks for a person, in its own words", hit);
  check((await said("section.part", { hasText: "If it goes wrong" })).includes("The old address can be set again."), "what can be done if it goes wrong");
  const similar = await said("section.part", { hasText: "Like it before" });
  check(similar.includes("rejected") && similar.includes("the customer said no"), "and how one like it was decided before, with why", similar);
  await screens(page, "judged");
  const setting = page.locator(".hits li", { hasText: "is a field of high risk" });
  check((await setting.getByRole("link").getAttribute("href")) === "/policies" && (await setting.textContent()).includes("of the setting authority.high_risk_fields"), "what a setting asks for leads to the settings", await setting.innerHTML());
  await page.locator(".hits li", { hasText: "rule careful" }).getByRole("link", { name: "global" }).click();
  await page.locator(".rules :target", { hasText: "A person looks at every deal" }).waitFor();
  check(/version=\d+#/.test(page.url()), "and a rule leads to itself in the version that fired", page.url());
  await signedCall(page, "desk_policy_apply", { document: "rules: []" });
}

async function together(all) {
  const { desk, page } = all;
  const id = await desk.propose("both", "deal/both", { note: "for two" });
  const other = await invited(all, "Grace", "--role", "approver", "--domain", "*");
  for (const one of [page, other.page]) await one.goto(`${desk.url}/?request=${id}`);
  await Promise.all([approve(page), approve(other.page)]);
  await until("it is decided", async () => (await state(desk, page, id)) === "approved");
  const approvals = () => page.evaluate((id) => fetch(`/api/desk_record_list?kind=request.approved&subject=request:${id}`).then((answer) => answer.json()), id).then(({ events }) => events.length);
  // On PostgreSQL what was done is sealed a moment later.
  await until("it is in the record", approvals);
  await desk.settle();
  check((await approvals()) === 1, "two people decide at once, and it is decided once", await approvals());
  const third = await desk.propose("both", "deal/third", { note: "for one" });
  for (const one of [page, other.page]) await one.goto(`${desk.url}/?request=${third}`);
  await approve(page);
  await other.page.locator(".standing").getByText("approved by Ada").waitFor();
  check((await other.page.locator("[data-key=a]").count()) === 0, "a decision made elsewhere shows at once, and cannot be made again");
  const mine = await desk.propose("both", "deal/given", { note: "for Grace" });
  await page.goto(`${desk.url}/?request=${mine}`);
  await page.keyboard.press("d");
  await page.getByLabel("To whom").selectOption({ label: "Grace" });
  const given = page.waitForRequest("**/api/desk_request_delegate");
  await page.getByRole("button", { name: "Give away", exact: true }).click();
  await page.getByText("Given away").waitFor();
  const { digest } = await signedCall(page, "desk_request_get", { request: mine });
  check((await given).postDataJSON().expected_digest === digest, "giving away names what was shown");
  const assignee = async () => (await signedCall(page, "desk_request_get", { request: mine })).assignee;
  const grace = await assignee();
  await page.keyboard.press("u");
  await until("it is given to nobody", async () => !(await assignee()));
  check(Boolean(grace), "and is undone");
  await page.goto(`${desk.url}/?request=${mine}`);
  await page.keyboard.press("d");
  await page.getByLabel("To whom").selectOption({ label: "Grace" });
  await page.getByRole("button", { name: "Give away", exact: true }).click();
  await until("it is given again", async () => (await assignee()) === grace);
  await page.goto(`${desk.url}/requests/${mine}`);
  await page.getByRole("button", { name: "Take it back" }).click();
  await until("it is taken back", async () => !(await assignee()));
  await page.getByText("It is nobody's in particular any more").waitFor();
  await page.getByRole("button", { name: "Take it back" }).waitFor({ state: "detached" });
  await page.keyboard.press("u");
  await until("it is given as before", async () => (await assignee()) === grace);
  check(true, "what was given is taken back, which is undone as well");
  await page.goto(`${desk.url}/?assignee=Grace`);
  await page.getByText("for Grace").first().waitFor();
  check((await rows(page)).join() === "update: deal/given", "what was given away is found by who has it");
  await other.context.close();
}

// What needs two people, decided by one in an emergency: with a reason, the passphrase anew, and for all to see.
async function glass(all) {
  const { desk, page } = all;
  const other = await invited(all, "Mary\u2066", "--role", "approver", "--domain", "*");
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
  const more = await desk.propose("urgent", "deal/urgent-2", { note: "the site is down again" });
  await page.goto(`${desk.url}/requests/${more}`);
  await page.getByText("Break the glass").click();
  await page.getByLabel("Why nobody can be waited for").fill("Nobody answers");
  await sleep(500);
  await page.getByRole("button", { name: "Approve alone" }).click();
  await page.locator("#toasts").getByRole("button", { name: "Undo" }).click();
  await until("it waits again", async () => (await state(desk, page, more)) === "pending");
  check(true, "and also that can be undone until it is used");
  await apply("rules: []");
  await other.context.close();
}

// On no page of the menu or the palette is there a form of something that the person may not call.
async function onlyTheirs({ desk, page }) {
  const every = (selector, what) => page.locator(selector).evaluateAll((all, what) => all.map((one) => one.getAttribute(what)), what);
  await page.goto(`${desk.url}/tools`);
  const theirs = new Set((await every("main a[href^='/tools/']", "href")).map((address) => address.replace("/tools/", "")));
  const places = [...(await every("nav [data-go], #further a", "href")), "/agents/looked-at"];
  const more = [];
  for (const place of places) {
    await page.goto(`${desk.url}${place}`);
    more.push(...(await every("form[data-call]:has(button:not([type=button]))", "data-call")).filter((operation) => !theirs.has(operation)).map((operation) => `${operation} at ${place}`));
  }
  check(theirs.size > 20 && places.length > 20 && more.length === 0, "nor on any other page", more);
}

// Whoever only looks on, or works along, is offered what their role may do and nothing else.
async function lookingOn(all) {
  const { desk } = all;
  const id = await desk.propose("looked-at", "deal/looked-at", { note: "to be seen" });
  const { task_id: first } = await desk.call("looked-at", "bridge_create_task", { to: "cowork", title: "First" });
  const { task_id: task } = await desk.call("looked-at", "bridge_create_task", { to: "cowork", title: "To be seen", depends_on: [first] });
  await desk.call("looked-at", "bridge_reserve_paths", { paths: ["docs/"], lease_seconds: 3600 });
  await desk.call("looked-at", "bridge_set_group", { name: "seen", members: ["cowork"] });
  const { context, page } = await invited(all, "Vera", "--role", "viewer");
  const { thread } = await desk.call("looked-at", "bridge_send_message", { to: "Vera", content: "To be seen" });
  const offered = async (page, place) => {
    await page.goto(`${desk.url}${place}`);
    return page.locator("header form[data-call=desk_pause], #many, input[name=selected], main form[data-call]:not([data-call^=desk_filter]), main a.button").evaluateAll((all) => all.map((one) => one.dataset.call ?? one.textContent));
  };
  const places = ["/", `/?request=${id}`, `/requests/${id}`, "/messages", "/messages?write=-", `/messages?thread=${thread}`, "/messages/groups", "/tasks", `/tasks/${task}`, "/tasks/files"];
  for (const place of places) {
    const found = await offered(page, place);
    check(found.length === 0, `who looks on is offered nothing to do at ${place.replace(/=.{20,}|s\/.{20,}/, " of one")}`, found);
  }
  await page.goto(`${desk.url}/requests/${id}`);
  await page.getByText("Your role looks on; approvers and owners decide.").waitFor();
  await onlyTheirs({ desk, page });
  await context.close();
  const member = await invited(all, "Mia", "--role", "member");
  check((await offered(member.page, `/requests/${id}`)).length === 0, "who works along decides nothing either");
  check((await offered(member.page, `/tasks/${task}`)).includes("bridge_add_task_note") && (await offered(member.page, "/messages")).includes("bridge_send_message"), "but gives tasks and writes");
  await member.context.close();
}

async function handoffs({ desk, page }) {
  const packet = { domain: "billing", goal: "Pay what is owed", reason: "The invoice does not match.", context: "Order 44 says 3, the invoice 5.", attempted_actions: '["Asked the supplier.", "Read the delivery note."]', ruled_out: ["Paying for 5."], confidence: 0.3 };
  const { handoff_id: id } = await desk.call("billing", "cowork_handoff", packet);
  await page.goto(`${desk.url}/?kind=handoff&request=${id}`);
  for (const text of ["Pay what is owed", "Order 44 says 3, the invoice 5.", "Asked the supplier."]) await page.getByText(text).waitFor();
  const lists = Object.fromEntries(await page.locator("section:has(> ul)").evaluateAll((parts) => parts.map((one) => [one.querySelector("h3, h2").textContent, [...one.querySelectorAll(":scope > ul > li")].map((item) => item.innerText.trim())])));
  check(lists["What it tried"]?.join() === "Asked the supplier.,Read the delivery note." && lists["What it ruled out"]?.join() === "Paying for 5.", "what was tried and ruled out are lists to be read", lists);
  await screens(page, "handoff");
  const late = await desk.call("billing", "cowork_handoff", { ...packet, reason: "Nobody answers", timeout_seconds: 1 });
  await page.goto(`${desk.url}/?kind=handoff`);
  await page.locator(`#row-${late.handoff_id}`).getByText("overdue").waitFor({ timeout: 60_000 });
  check(true, "a handoff that nobody answered in time stands out");
  await page.goto(`${desk.url}/?assignee=role:owner`);
  const gone = await page.locator("#rows > li").evaluateAll((all) => all.map((one) => one.id));
  check(gone.join() === `row-${late.handoff_id}`, "and what went to the owners is found by that", gone);
  await signedCall(page, "desk_request_delegate", { request: late.handoff_id, to: "Ada" });
  await page.goto(`${desk.url}/?assignee=Ada`);
  await page.locator(`#row-${late.handoff_id}`).getByText("overdue").waitFor();
  check(true, "and stands out also once it was given to somebody");
  await page.goto(`${desk.url}/?kind=handoff&request=${id}`);
  await page.keyboard.press("a");
  await page.getByLabel("What you decided").fill("The order is right.");
  await page.getByLabel("What the agent is to do").fill("Pay for 3.");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.getByText("Answered").waitFor();
  const { pending_instructions: told } = await desk.call("billing", "cowork_check_handoff", {});
  check(JSON.stringify(told).includes("Pay for 3.") && told[0].hand_back === true, "a handoff is answered, and the agent gets its instructions", told);
  await page.goto(`${desk.url}/?kind=handoff`);
  check((await page.locator("input[name=selected]").count()) === 0, "handoffs are answered one by one");
  await page.goto(`${desk.url}/?kind=handoff&request=${late.handoff_id}`);
  await page.keyboard.press("a");
  await page.getByLabel("What you decided").fill("I call them myself.");
  await page.getByLabel("Hand the work back").uncheck();
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.getByText("Answered").waitFor();
  const { pending_instructions: kept } = await desk.call("billing", "cowork_check_handoff", {});
  const own = kept.find(({ handoff_id: handoff }) => handoff === late.handoff_id);
  check(own && !own.hand_back && JSON.stringify(own).includes("I call them myself."), "or kept, which the agent is told", kept);
}

// Whoever asks for something answers and withdraws on its page, and somebody else decides.
async function own(all) {
  const { desk, page } = all;
  const other = await invited(all, "Hedy", "--role", "approver", "--domain", "*");
  const asked = await signedCall(page, "agents_request_approval", { agentId: "talker", action: "send", description: "Send it to all of them.", approvers: ["Hedy"] });
  const id = asked.approvalId;
  await page.goto(`${desk.url}/requests/${id}`);
  await page.getByText("You ask for this, so somebody else decides.").waitFor();
  check((await page.locator("[data-key=a], [data-key=r], [data-key=q]").count()) === 0, "who asks for it is offered no deciding", asked);
  await other.page.goto(`${desk.url}/requests/${id}`);
  await other.page.keyboard.press("q");
  await other.page.getByLabel("What you want to know").fill("What for?");
  await other.page.getByRole("button", { name: "Ask", exact: true }).click();
  await other.page.getByText("Waits for an answer of the agent or of Ada").waitFor();
  await page.getByLabel("Your answer").fill("For the fair.");
  await screens(page, "own-request");
  await page.getByRole("button", { name: "Send your answer" }).click();
  await other.page.locator(".thread").getByText("For the fair.").waitFor();
  check(true, "but answers what was asked");
  await page.locator("summary", { hasText: "Withdraw" }).click();
  await page.getByLabel("Why it is no longer needed").fill("Changed my mind.");
  await page.getByRole("button", { name: "Withdraw the request" }).click();
  await until("it is withdrawn", async () => (await state(desk, page, id)) === "cancelled");
  check(true, "and withdraws it");
  await other.context.close();
}

// Everything that hostile text could try, in every field that an agent writes.
async function hostile({ desk, page }) {
  const text = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1">"'\u202eevil\u200b\u2066 ${"long ".repeat(100)}`;
  const huge = `${text}${"x".repeat(100_000)}`;
  const id = await desk.propose("hostile", text, { note: huge, [`\u202e\u200b\u2066${text}`.slice(0, 60)]: text }, { reasoning: huge.slice(0, 30_000), reversibility: huge.slice(0, 30_000), action: text.slice(0, 100), domain: "crm.deals" });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.locator("article.request").waitFor();
  check(!(await page.evaluate(() => globalThis.owned)), "hostile text runs nothing");
  check((await page.locator("main script, main img").count()) === 0, "and makes no element");
  check((await page.locator("article.request").textContent()).includes("\\u{202e}"), "marks that turn text around are made visible");
  check((await hidden(page)).length === 0, "everywhere, in names and labels too", await hidden(page));
  const labels = await page.locator("article.request label, #delegate-to option").evaluateAll((all) => all.map((one) => one.textContent));
  check(labels.some((label) => label.startsWith("\\u{202e}")) && labels.some((label) => label === "Mary\\u{2066}"), "also where one edits or gives away", labels);
  await screens(page, "hostile");
  await hostileRule({ desk, page });
  await hostileTalk({ desk, page }, text, huge);
}

// The same in a rule that is drafted of an approval.
async function hostileRule({ desk, page }) {
  for (const number of [1, 2]) await desk.propose("hostile-rule", `deal/\u202e${number}`, { note: number });
  await page.goto(`${desk.url}/?requester=hostile-rule`);
  await page.locator("[data-row]").first().click();
  await page.getByText("Approve more like it").click();
  await sleep(500);
  await page.getByRole("button", { name: "Approve, and draft a rule" }).click();
  await page.locator("#rule-list li").first().waitFor();
  check((await page.locator("#rule").textContent()).includes("\\u{202e}") && (await hidden(page)).length === 0, "also in a rule that is drafted", await hidden(page));
  await page.getByRole("button", { name: "Close" }).click();
}

// The same in what is said about a request, as long as each may be.
async function hostileTalk({ desk, page }, text, huge) {
  const shown = async (address, what) => {
    await page.goto(address);
    await page.locator("article.request").waitFor();
    const said = await page.locator("article.request").textContent();
    check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0 && said.includes("\\u{202e}") && said.includes("<script>"), `hostile text ${what} is shown as text`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    check(!wide, "and stays within the page");
  };
  const handoff = { domain: "billing", goal: huge.slice(0, 30_000), reason: huge.slice(0, 30_000), context: huge, state: huge, attempted_actions: JSON.stringify([huge]), ruled_out: [text], confidence: 0.3 };
  const { handoff_id: handed } = await desk.call("hostile", "cowork_handoff", handoff);
  await shown(`${desk.url}/requests/${handed}`, "in a handoff");
  const talked = await desk.propose("hostile", "deal/talk", { note: 1 });
  const long = huge.slice(0, 15_000);
  await signedCall(page, "desk_request_ask", { request: talked, question: long });
  await desk.call("hostile", "cowork_answer_question", { request_id: talked, answer: long });
  await shown(`${desk.url}/requests/${talked}`, "in a question and its answer");
  await signedCall(page, "desk_request_reject", { request: talked, reason: huge });
  await shown(`${desk.url}/requests/${talked}`, "in a rejection");
}

export default async function (all) {
  for (const part of [claimed, editing, remembering, talking, judged, handoffs, together, own, glass, lookingOn, hostile]) await part(all);
}
