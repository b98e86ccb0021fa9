// The inbox: arrival, filters, keys, deciding alone and with others, and what happens when the desk goes away.

import { approve, check, hidden, invited, screens, signedCall, sleep, until } from "../desk.mjs";

// What the desk says when somebody has not shown for a while that they are there.
const LATE = { code: "forbidden", message: "this needs you to show that you are there", needs_presence: true };
const rows = (page) => page.locator("[data-row] .title").allTextContents();
const open = (page) => page.locator("article.request h2").textContent();
const state = async (desk, page, id) => (await signedCall(page, "desk_request_get", { request: id })).state;

// What the browser shows on the app's icon.
function countBadge(page) {
  return page.evaluate(() => {
    navigator.setAppBadge = async (count) => void (globalThis.badge = count);
    navigator.clearAppBadge = async () => void (globalThis.badge = 0);
  });
}
const badge = (page) => page.evaluate(() => globalThis.badge);

// The first steps are ticked off by what happens, and go when they are known.
async function firstSteps({ desk, page }) {
  await page.getByText("Nothing waits for you").waitFor();
  const done = () => page.locator("#tour [data-done]").count();
  check((await done()) === 0, "the first steps are all to do");
  await countBadge(page);
  await screens(page, "first-steps");
  await desk.call("first", "bridge_send_message", { to: "cowork", content: "I am here." });
  await until("one is done", async () => (await done()) === 1);
  check((await page.locator("#tour [data-done]").innerText()).includes("Connect an agent"), "whatever an agent does first shows that it is connected");
  await desk.propose("first", "deal/0", { note: "zero" });
  await until("two are done", async () => (await done()) === 2);
  check((await badge(page)) === 1, "what waits is counted on the app's icon", await badge(page));
  await page.getByText("update: deal/0").click();
  await page.locator("article.request").waitFor();
  await approve(page);
  await page.getByText("Nothing waits for you").waitFor();
  await until("all are done", async () => (await done()) === 3);
  check(true, "and are ticked off by what really happens");
  check((await badge(page)) === 0, "whose count goes when nothing waits any more", await badge(page));
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
  check((await page.getByLabel("Why, for the agent to learn").inputValue()) === "too early", "r opens the form and puts the cursor into it; letters in it do nothing else");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  check(await page.getByRole("heading", { name: "Keys" }).isVisible(), "? shows the keys");
  const letters = await page.locator("nav [data-go]").evaluateAll((links) => links.map((link) => `${link.dataset.go} ${link.firstChild.textContent.toLowerCase().trim()}`));
  const told = await page.locator("#help").textContent();
  check(letters.every((letter) => told.includes(letter)), "with the letter of every page", letters);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("deal/2");
  await page.keyboard.press("Enter");
  await until("the palette opens it", async () => (await open(page)) === "update: deal/2");
  check(true, "the palette finds a request");
  await page.keyboard.press("Escape");
  await until("nothing is open", async () => (await page.locator("article.request").count()) === 0 && (await rows(page)).length === 6);
  check(true, "Esc goes back to the list, also where both are in sight");
  await page.keyboard.press("/");
  check(await page.evaluate(() => document.activeElement.name === "search"), "/ goes to the search");
  await page.keyboard.type("deal/4");
  await page.keyboard.press("Enter");
  await until("one row", async () => (await rows(page)).join() === "update: deal/4");
  check(page.url().includes("search=deal%2F4"), "and the search is an address");
  const promised = await page.locator("input[name=search]").evaluate((field) => `${field.placeholder} ${field.ariaLabel}`);
  await page.locator("input[name=search]").fill("They asked for it");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing fits").waitFor();
  check(promised.includes("titles") && !/reason/i.test(promised), "which looks through titles, as it says: a reason is found elsewhere", promised);
  await page.goto(`${desk.url}/?requester=agent-3`);
  check((await rows(page)).join() === "update: deal/3", "filters by agent");
  await page.goto(`${desk.url}/?age=60`);
  await page.getByText("Nothing fits").waitFor();
  check(true, "and by age");
}

// The palette opens wherever one is, also where a key leads into a text.
async function palette({ desk, page }) {
  await page.goto(desk.url);
  const places = await page.locator("nav [data-go]").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  const closed = [];
  for (const place of [...places, "/make"]) {
    await page.goto(`${desk.url}${place}`);
    await page.keyboard.press("Control+k");
    await page.locator("#palette").waitFor({ timeout: 3_000 }).catch(() => closed.push(place));
  }
  check(places.length > 5 && closed.length === 0, "the palette opens on every page", closed);
  await page.keyboard.type("go to inbox");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${desk.url}/`);
  await commands({ desk, page });
}

// It knows every page, and what can be done on the open one.
async function commands({ desk, page }) {
  const found = async (place, ...wanted) => {
    await page.goto(`${desk.url}${place}`);
    await page.keyboard.press("Control+k");
    const all = await page.locator("#palette-list li").allTextContents();
    return wanted.filter((label) => !all.includes(label));
  };
  const pages = ["Trust", "Compliance", "Passkeys", "Edit the policies", "Why this answer?", "Make an agent", "Reserved files", "Standing approvals"];
  const missing = await found("/record", "Verify now", "Pause all", ...pages.map((name) => `Go to ${name}`));
  check(missing.length === 0, "the palette knows pages that are in no menu, and what the open one can do", missing);
  await screens(page, "palette");
  const field = page.getByRole("combobox", { name: "Search and commands" });
  check((await field.getAttribute("aria-controls")) === "palette-list" && (await page.locator(`#${await field.getAttribute("aria-activedescendant")}`).getAttribute("aria-selected")) === "true", "and is a list to choose from for who hears it");
  await field.fill("passkeys");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${desk.url}/passkeys`);
  const other = await found("/agents", "Register an agent");
  await field.fill("register an agent");
  await page.keyboard.press("Enter");
  await until("the form is open", () => page.evaluate(() => document.activeElement.id === "new-agent"));
  check(other.length === 0, "what it names it does");
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

// Filters are chosen in the form, out of what is known, and a wrong one is said where the list would be.
async function filtered({ desk, page, complaints }) {
  await desk.propose("filtered", "lead/1", { note: "one" }, { domain: "crm.leads" });
  await desk.propose("filtered", "lead/2", { billing_address: "Elsewhere 2" }, { domain: "crm.leads" });
  await page.goto(desk.url);
  const form = page.locator("form.filters");
  const known = (list) => page.locator(`#known-${list} option`).evaluateAll((options) => options.map(({ value }) => value));
  check((await known("domain")).includes("crm.leads") && (await known("requester")).includes("agent-3") && (await known("assignee")).join() === "Ada,role:owner", "domains, agents and people are offered to filter by", await known("domain"));
  await form.locator("summary").click();
  await form.getByLabel("Domain", { exact: true }).fill("crm.leads");
  await form.getByRole("button", { name: "Filter", exact: true }).last().click();
  await until("two rows", async () => (await rows(page)).join() === "update: lead/2,update: lead/1");
  check(page.url().includes("domain=crm.leads"), "the form filters by domain");
  await form.getByLabel("Risk").selectOption("high");
  await until("one row", async () => (await rows(page)).join() === "update: lead/2");
  check(page.url().includes("risk=high"), "and by risk");
  await form.getByLabel("Given to").fill("Adda");
  await page.keyboard.press("Enter");
  await page.locator("section.list").getByRole("alert").getByText("Given to: there is no person of this name").waitFor();
  check((await form.getByLabel("Given to").inputValue()) === "Adda" && (await page.locator("nav[aria-label=Pages]").count()) === 1, "a misspelt name is said in place, and the form is there to mend it");
  await form.getByLabel("Given to").fill("Ada");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing fits").waitFor();
  await until("the complaint is gone", async () => (await page.getByRole("alert").getByText("Given to:").count()) === 0);
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
  await screens(page, "rule");
  await page.getByRole("button", { name: "Close" }).click();
  check((await page.locator("#toasts").getByRole("button", { name: "Undo" }).count()) === 1, "and can be undone as any other");
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

// Whatever is offered to put a request off until, the desk takes; so it does a moment of one's own, before the request expires.
async function puttingOff({ desk, page, complaints }) {
  const asking = {
    proposal: async (until) => desk.propose("later", `deal/later-${until}`, { note: until }),
    "approval for a day": async (until) => {
      const asked = { agentId: "later", action: `send-${until}`, description: "Send it to all of them.", approvers: ["Ada"] };
      return (await desk.call("later", "agents_request_approval", asked)).approvalId;
    },
  };
  const putOff = async (id, choose) => {
    await page.goto(`${desk.url}/requests/${id}`);
    await page.keyboard.press("s");
    await choose();
    await page.getByRole("button", { name: "Put off", exact: true }).click();
  };
  const standing = page.locator(".standing", { hasText: "Put off until" });
  for (const [kind, ask] of Object.entries(asking)) {
    await page.goto(`${desk.url}/requests/${await ask("any")}`);
    const offered = await page.locator("#snooze-until option").evaluateAll((options) => options.map(({ value }) => value));
    for (const minutes of offered) {
      await putOff(await ask(minutes), () => page.locator("#snooze-until").selectOption(minutes));
      await standing.waitFor();
    }
    check(offered.length > 1, `${kind}: it is put off until any moment that is offered`, offered);
  }
  const id = await asking.proposal("own");
  await putOff(id, () => page.getByLabel("Or until a moment of your own").fill("2099-01-01T10:00"));
  const refusal = page.locator(".toast.alarm");
  await refusal.waitFor();
  check(/expires, at .*\b20\d\d\b/.test(await refusal.textContent()), "one that is too late is refused, with the day of the end", await refusal.textContent());
  await until("the refusal is logged", () => complaints.some((complaint) => complaint.includes("a status of 400")));
  complaints.splice(complaints.findIndex((complaint) => complaint.includes("a status of 400")), 1);
  const own = await page.evaluate(() => {
    const moment = new Date(Date.now() + 26 * 3600_000);
    return new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  });
  await putOff(id, () => page.getByLabel("Or until a moment of your own").fill(own));
  await standing.waitFor();
  const { snoozed_until: until_ } = await signedCall(page, "desk_request_get", { request: id });
  check(new Date(until_).getTime() === (await page.evaluate((own) => new Date(own).getTime(), own)), "and one of one's own is taken in the reader's zone", until_);
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
  check(listed.join() === "update: deal/m2 · many · risk low,update: deal/m1 · many · risk low", "deciding many shows exactly what it decides, of whom and at what risk", listed);
  check(await page.locator("#confirm-reason").isHidden(), "an approval needs no reason");
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Approve: 2 done").waitFor();
  const left = async () => (await rows(page)).filter((title) => title.includes("deal/m"));
  await until("one is left", async () => (await left()).join() === "update: deal/m3");
  check(true, "and decides that");
  await page.keyboard.press("u");
  await page.getByText("Undone: 2 of 2").waitFor();
  await until("they wait again", async () => (await left()).length === 3);
  check(true, "which is undone as a whole");
  await rejecting({ desk, page }, left);
}

// Many are rejected with one reason, which every agent gets.
async function rejecting({ desk, page }, left) {
  for (const target of ["deal/m1", "deal/m2"]) {
    await page.locator("[data-row]", { hasText: target }).focus();
    await page.keyboard.press("x");
  }
  await page.getByText("2 selected").waitFor();
  check(true, "x selects the row that is focused");
  await page.getByRole("button", { name: "Reject selected" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  check(await page.locator("#confirm").isVisible(), "a rejection says why");
  await page.getByLabel("Reason, for the agents to learn from").fill("both too early");
  await screens(page, "reject-many");
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Reject: 2 done").waitFor();
  await until("one is left", async () => (await left()).join() === "update: deal/m3");
  const { requests } = await signedCall(page, "desk_request_list", { requester: "many", state: "rejected" });
  const reasons = [];
  for (const { request } of requests) reasons.push((await signedCall(page, "desk_request_get", { request })).reason);
  check(reasons.join() === "both too early,both too early", "and every agent is told", reasons);
}

// Who does not show that they are there is asked once, however many are selected.
async function unshown({ desk, page }) {
  const ids = [];
  for (const number of [1, 2, 3]) ids.push(await desk.propose("unshown", `deal/n${number}`, { note: number }));
  await page.goto(`${desk.url}/?requester=unshown`);
  for (const box of await page.locator("input[name=selected]").all()) await box.check();
  await page.route("**/api/desk_request_approve", (route) => route.fulfill({ status: 403, json: { error: LATE } }));
  await page.evaluate(() => {
    globalThis.asked = 0;
    const dialog = document.getElementById("presence");
    dialog.showModal = () => {
      globalThis.asked += 1;
      queueMicrotask(() => dialog.dispatchEvent(new Event("close")));
    };
  });
  await page.getByRole("button", { name: "Approve selected" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Approve: 0 done, 3 not").waitFor();
  const asked = await page.evaluate(() => globalThis.asked);
  check(asked === 1, "who does not give the passphrase is asked for it once, and nothing more is tried", asked);
  await page.unroute("**/api/desk_request_approve");
  for (const request of ids) await signedCall(page, "desk_request_reject", { request, reason: "not needed" });
}

// What u undoes is the last thing that was done, or nothing.
async function undoing({ desk, page }) {
  const [first, second, third] = [await desk.propose("undone", "deal/u1", { note: 1 }), await desk.propose("undone", "deal/u2", { note: 2 }), await desk.propose("undone", "deal/u3", { note: 3 })];
  await page.goto(`${desk.url}/?requester=undone&request=${first}`);
  await approve(page);
  await page.getByText("Approved", { exact: true }).waitFor();
  await page.goto(`${desk.url}/?requester=undone&request=${second}`);
  await approve(page);
  await until("it is approved", async () => (await state(desk, page, second)) === "approved");
  await until("the next one is open", async () => (await open(page)) === "update: deal/u3");
  await page.keyboard.press("r");
  await page.getByLabel("Why, for the agent to learn").fill("no");
  await page.getByRole("button", { name: "Reject", exact: true }).click();
  await until("it is rejected", async () => (await state(desk, page, third)) === "rejected" && !(await rows(page)).includes("update: deal/u3"));
  await page.keyboard.press("u");
  await page.getByText("There is nothing to undo").waitFor();
  check((await state(desk, page, second)) === "approved", "a rejection is not undone, nor what was approved before it");
  const later = await desk.propose("undone", "deal/u4", { note: 4 });
  await page.goto(`${desk.url}/?requester=undone&request=${later}`);
  await page.keyboard.press("s");
  await page.getByRole("button", { name: "Put off", exact: true }).click();
  await until("it is put off", async () => !(await rows(page)).includes("update: deal/u4"));
  await page.keyboard.press("u");
  await page.getByText("Undone", { exact: true }).waitFor();
  await until("it waits again", async () => (await rows(page)).includes("update: deal/u4"));
  check(true, "what was put off is taken up again");
}

// Among everything, what was decided too, u takes back what was done last, not the approval that is open.
async function undoingAmongAll({ desk, page }) {
  const before = await desk.propose("undone-all", "deal/a1", { note: 1 });
  await signedCall(page, "desk_request_approve", { request: before });
  const last = await desk.propose("undone-all", "deal/a2", { note: 2 });
  await page.goto(`${desk.url}/?view=all&requester=undone-all&request=${last}`);
  await approve(page);
  await page.getByText("Approved", { exact: true }).waitFor();
  await until("the one before is open", async () => (await open(page)) === "update: deal/a1");
  await page.locator("[data-key=u]").waitFor();
  await page.keyboard.press("u");
  await page.getByText("Undone", { exact: true }).waitFor();
  check((await state(desk, page, last)) === "pending" && (await state(desk, page, before)) === "approved", "u takes back what was done last, whatever is open");
  await page.keyboard.press("u");
  await until("it is taken back", async () => (await state(desk, page, before)) === "pending");
  check(true, "and then what is open");
}

// What takes effect when it is approved is offered as that: no changing it first, no undo, nothing about acts like it.
async function atOnce({ desk, page }) {
  for (let number = 0; number < 20; number++) {
    const request = await desk.propose("climbs", `deal/climb${number}`, { note: number }, { domain: "climbing" });
    await signedCall(page, "desk_request_approve", { request });
  }
  await page.goto(`${desk.url}/?kind=promotion`);
  await page.locator("[data-row]").click();
  await page.locator("article.request").waitFor();
  check((await page.locator("article.request [data-key=e], [id^=remember-]").count()) === 0, "a promotion is approved as it is, and for nothing else");
  const undo = page.locator("#toasts").getByRole("button", { name: "Undo" });
  await approve(page);
  await page.locator("#toasts").getByText("Approved", { exact: true }).waitFor();
  check((await undo.count()) === 0, "and no undo is offered of what took effect at once");
  const { task_id: task } = await desk.call("climbs", "bridge_create_task", { to: "cowork", title: "by the agent" });
  await signedCall(page, "bridge_update_task", { task_id: task, title: "by a person" });
  await desk.call("climbs", "bridge_update_task", { task_id: task, title: "by the agent again" });
  await page.goto(`${desk.url}/?kind=edit`);
  await page.locator("[data-row]").click();
  await page.locator(".diff").waitFor();
  const [now, then] = [await page.locator(".diff del").allInnerTexts(), await page.locator(".diff ins").allInnerTexts()];
  check(now.join() === "by a person" && then.join() === "by the agent again", "an edit shows what is there now and what would be", [now, then]);
  await page.locator("input[name=selected]").check();
  await page.getByRole("button", { name: "Approve selected" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Approve: 1 done").waitFor();
  check((await undo.count()) === 0, "nor where many are decided");
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
  await page.locator(`#row-${late.handoff_id}`).getByText("overdue").waitFor({ timeout: 20_000 });
  check(true, "a handoff that nobody answered in time stands out");
  await page.goto(`${desk.url}/?assignee=role:owner`);
  const gone = await page.locator("#rows > li").evaluateAll((all) => all.map((one) => one.id));
  check(gone.join() === `row-${late.handoff_id}`, "and what went to the owners is found by that", gone);
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
  const asked = await signedCall(page, "agents_request_approval", { agentId: "later", action: "send", description: "Send it to all of them.", approvers: ["Hedy"] });
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

// A desk that says nothing any more is as good as lost, though no connection is closed.
async function silent({ desk, page, context }) {
  await page.goto(desk.url);
  const lost = page.getByText("The connection to the desk is lost");
  let arrives;
  desk.process.kill("SIGSTOP");
  try {
    await lost.waitFor({ timeout: 40_000 });
    arrives = desk.propose("silent", "deal/silent", { note: "while it was silent" }, { priority: "urgent" });
  } finally {
    desk.process.kill("SIGCONT");
  }
  await arrives;
  await page.getByText("update: deal/silent").waitFor();
  await lost.waitFor({ state: "hidden" });
  check(true, "a desk that is silent is told as lost, and caught up with when it speaks again");
  // Nobody answers this one.
  let asked = 0;
  await page.route(`${desk.url}/`, () => void (asked += 1), { times: 1 });
  await desk.propose("silent", "deal/hanging", { note: "while a page was waited for" }, { priority: "urgent" });
  await page.getByText("update: deal/hanging").waitFor({ timeout: 40_000 });
  await lost.waitFor({ state: "hidden" });
  check(asked === 1, "a page that does not come is asked for again", asked);
  await context.setOffline(true);
  await lost.waitFor({ timeout: 10_000 });
  await context.setOffline(false);
  await lost.waitFor({ state: "hidden" });
  check(true, "and a network that goes is told at once, until it is back");
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

// A page that nobody looks at, and what its browser tells.
async function hide(page) {
  await page.evaluate(() => {
    globalThis.told = [];
    globalThis.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, { body, renotify }) {
        // As Chrome for Android does.
        if (globalThis.refusesToTell) throw new TypeError("Illegal constructor");
        if (!renotify && globalThis.told.length) return;
        globalThis.told.push(`${title}: ${body}`);
      }
    };
    Object.defineProperty(document, "hidden", { get: () => true });
  });
}

// A browser that refuses to tell costs nothing but the telling.
async function untold({ desk, page }) {
  const count = async () => parseInt(await page.locator("#count").textContent(), 10);
  const before = await count();
  await page.evaluate(() => (globalThis.refusesToTell = true));
  for (const number of [1, 2]) {
    await desk.propose("notified", `deal/untold-${number}`, { note: "now" });
    await until(`the page counts ${before + number}`, async () => (await count()) === before + number);
  }
  await page.evaluate(() => (globalThis.refusesToTell = false));
  check(true, "where the browser refuses to tell, pages are kept up to date all the same");
}

// The browser tells of a new request while nobody looks, whichever page is open, once for all tabs.
async function notifying({ desk, page, context }) {
  await context.grantPermissions(["notifications"], { origin: desk.url });
  await page.goto(`${desk.url}/tasks`);
  await hide(page);
  await countBadge(page);
  await page.locator(".you summary").click();
  await page.getByRole("button", { name: "Notify me in this browser" }).click();
  await page.getByText("New requests are told by this browser").waitFor();
  await desk.propose("notified", "deal/notified", { note: "now" });
  const told = await until("it is told", () => page.evaluate(() => globalThis.told[0]));
  check(/^Deskmate: \d+\+? requests? waits? for you\.$/.test(told), "a new request is told by the browser, also on the page of tasks", told);
  const waiting = await page.evaluate(() => document.body.dataset.count);
  check((await page.title()).startsWith(`(${waiting}) `) && (await page.locator("#count").textContent()) === waiting, "and counted there", await page.title());
  await untold({ desk, page });
  check((await badge(page)) === parseInt(await page.locator("#count").textContent(), 10), "the app's icon counts what waits", await badge(page));
  // Another tab that nobody looks at learns of it from the one that follows.
  const other = await context.newPage();
  await other.goto(`${desk.url}/people`);
  await hide(other);
  await desk.propose("notified", "deal/notified-2", { note: "again" });
  const more = `(${parseInt(waiting, 10) + 3}) `;
  await until("both count it", async () => (await page.title()).startsWith(more) && (await other.title()).startsWith(more));
  await sleep(500);
  check((await other.evaluate(() => globalThis.told.length)) === 0 && (await page.evaluate(() => globalThis.told.length)) === 2, "every tab counts it, and one tells it");
  await other.close();
  await signedCall(page, "desk_pause", { all: true });
  await page.getByText("All agents are paused: every act").waitFor();
  await signedCall(page, "desk_resume", { all: true });
  await page.getByText("All agents are paused: every act").waitFor({ state: "detached" });
  check(true, "the kill switch shows on every page at once");
}

// More than are counted, and more than one page shows.
async function crowded({ desk, page }) {
  for (let number = 0; number < 520; number++) await desk.propose(`crowd-${number % 20}`, `deal/c${number}`, { note: number });
  await page.goto(`${desk.url}/tasks`);
  check((await page.locator("#count").textContent()) === "99+", "beyond a hundred the count says so");
  await hide(page);
  await desk.propose("crowd-low", "deal/behind", { note: "behind all others" }, { priority: "low" });
  await until("it is told", () => page.evaluate(() => globalThis.told.length === 1));
  check(true, "a new request is told also then, wherever it stands in the list");
  await page.goto(`${desk.url}/?rows=450`);
  await page.getByRole("link", { name: "Show more" }).click();
  await until("five hundred rows", async () => (await page.locator("[data-row]").count()) === 500);
  const first = await page.locator("#rows > li").evaluateAll((rows) => rows.map((row) => row.id));
  await page.getByRole("link", { name: "Show the next ones" }).click();
  await until("the rest", async () => (await page.locator("[data-row]").count()) < 100);
  const rest = await page.locator("#rows > li").evaluateAll((rows) => rows.map((row) => row.id));
  check(rest.length >= 20 && rest.every((id) => !first.includes(id)), "what does not fit on a page is on the next one", rest.length);
  const more = page.getByRole("link", { name: "Show more" });
  for (let shown = rest.length; await more.count(); shown = await page.locator("[data-row]").count()) {
    await more.click();
    await until("more of the rest", async () => (await page.locator("[data-row]").count()) > shown);
  }
  const last = await rows(page);
  check(last.includes("update: deal/behind"), "with what comes after all others", last);
  await page.getByRole("link", { name: "Back to the first ones" }).click();
  await until("the first ones", async () => (await page.locator("#rows > li").first().getAttribute("id")) === first[0]);
  check(true, "and there is a way back");
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
  await page.setViewportSize({ width: 380, height: 760 });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  const box = await page.getByRole("button", { name: "Pause all" }).boundingBox();
  check((await page.evaluate(() => scrollY)) > 200 && box.y >= 0 && box.y < 100, "on a phone it stays in reach however far one scrolls", box);
  await page.setViewportSize({ width: 1280, height: 800 });
}

export default async function (all) {
  for (const part of [firstSteps, arriving, byKeyboard, palette, kept, filtered, claimed, editing, remembering, talking, puttingOff, many, unshown, undoing, undoingAmongAll, atOnce, judged, handoffs, together, own, glass, lookingOn, hostile, scrolled, pausing, notifying, crowded, silent, away, tabs]) await part(all);
}
