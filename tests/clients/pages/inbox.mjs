// The inbox: arrival, filters, keys, deciding one by one and many at once, and what happens when the desk goes away.

import { LATE, approve, check, forgive, hidden, rows, screens, signedCall, sleep, state, until } from "../desk.mjs";

const open = (page) => page.locator("article.request h2").textContent();

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
  const more = [];
  for (let number = 1; number <= 5; number++) more.push(await desk.propose("first", `deal/0${number}`, { note: number }));
  await page.getByText("update: deal/05").waitFor();
  check((await done()) === 2, "and an agent that asks for many things at once takes the last step away from nobody");
  for (const request_id of more) await desk.call("first", "cowork_cancel_request", { request_id, reason: "not needed" });
  await until("one is left", async () => (await rows(page)).length === 1);
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
  await desk.propose("code", "deal/1", { note: "first" });
  await page.getByText("update: deal/1").waitFor();
  check(true, "a new request is there without a reload");
  check((await page.title()).startsWith("(1) "), "and counted in the title", await page.title());
  check((await page.locator("#count").textContent()) === "1", "and in the list of pages");
}

// Presses a key as soon as the next page is shown in place: between two steps of a check a busy machine can let any time pass.
function pressAtOnce(page, key) {
  return page.evaluate((key) => {
    const main = document.getElementById("main");
    const press = (_, watch) => {
      if (main.hasAttribute("aria-busy")) return;
      watch.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    };
    new MutationObserver(press).observe(main, { attributeFilter: ["aria-busy"] });
  }, key);
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
  await pressAtOnce(page, "a");
  await page.keyboard.press("k");
  await until("k opens the one before", async () => (await open(page)) === "update: deal/6");
  await page.getByText("This came up just now: look at it first.").waitFor();
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
    await page.locator("#palette").waitFor().catch(() => closed.push(place));
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
  await forgive(complaints, 400);
  const own = await page.evaluate(() => {
    const moment = new Date(Date.now() + 26 * 3600_000);
    return new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  });
  await putOff(id, () => page.getByLabel("Or until a moment of your own").fill(own));
  await standing.waitFor();
  const { snoozed_until: until_ } = await signedCall(page, "desk_request_get", { request: id });
  check(new Date(until_).getTime() === (await page.evaluate((own) => new Date(own).getTime(), own)), "and one of one's own is taken in the reader's zone", until_);
  await puttingOffElsewhere({ desk, page }, putOff);
}

// "In an hour" is an hour of the desk, whatever the clock says where the page is read; and what was put off comes back by itself.
async function puttingOffElsewhere({ desk, page }, putOff) {
  const id = await desk.propose("later", "deal/slow", { note: "slow" });
  await putOff(id, async () => {
    await page.evaluate(() => {
      const now = Date.now.bind(Date);
      Date.now = () => now() - 2 * 3600_000;
    });
    await page.locator("#snooze-until").selectOption({ label: "in an hour" });
  });
  await page.locator(".standing", { hasText: "Put off until" }).waitFor();
  const { snoozed_until: end } = await signedCall(page, "desk_request_get", { request: id });
  const away = new Date(end) - Date.now();
  check(away > 50 * 60_000 && away <= 60 * 60_000, "a clock that is slow puts nothing off for less", away);
  await page.goto(`${desk.url}/?requester=later`);
  const row = page.getByText("update: deal/slow");
  await signedCall(page, "desk_request_snooze", { request: id, until: new Date(Date.now() + 10_000).toISOString() });
  await row.waitFor();
  check(true, "what was put off comes back into an inbox that is open");
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
  await page.getByText("Rejected", { exact: true }).waitFor();
  await until("it is rejected", async () => (await state(desk, page, third)) === "rejected" && !(await rows(page)).includes("update: deal/u3"));
  await page.keyboard.press("u");
  await page.getByText("There is nothing to undo").waitFor();
  check((await state(desk, page, second)) === "approved", "a rejection is not undone, nor what was approved before it");
  const later = await desk.propose("undone", "deal/u4", { note: 4 });
  await page.goto(`${desk.url}/?requester=undone&request=${later}`);
  await page.keyboard.press("s");
  await page.getByRole("button", { name: "Put off", exact: true }).click();
  await page.locator("#toasts").getByText("Put off", { exact: true }).waitFor();
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

// What comes up is read from its head, however far what was open before was scrolled; and the list stands where it was left.
async function fromTheHead({ desk, page }) {
  const long = Object.fromEntries(Array.from({ length: 60 }, (_, number) => [`field${number}`, "x"]));
  for (const target of ["deal/long1", "deal/long2"]) await desk.propose("long", target, long);
  await page.goto(`${desk.url}/?requester=long`);
  await page.locator("[data-row]").first().click();
  await until("one is open", async () => (await page.locator("article.request").count()) && (await open(page)) === "update: deal/long2");
  const pane = page.locator("#detail");
  await pane.evaluate((pane) => (pane.scrollTop = 600));
  await desk.propose("long", "deal/news", { note: "news" });
  await page.locator("[data-row]", { hasText: "deal/news" }).waitFor();
  check((await pane.evaluate((pane) => pane.scrollTop)) === 600, "news leave what is read where it is");
  await page.keyboard.press("j");
  await until("the next one is open", async () => (await open(page)) === "update: deal/long1");
  check((await pane.evaluate((pane) => pane.scrollTop)) === 0, "the next request comes up with its head");
  await page.setViewportSize({ width: 380, height: 760 });
  await page.goto(desk.url);
  const top = () => page.evaluate(() => scrollY);
  await page.locator("[data-row]").nth(40).scrollIntoViewIfNeeded();
  const left = await top();
  // Not by the mouse, which may scroll once more.
  await page.locator("[data-row]").nth(40).evaluate((row) => row.click());
  await page.locator("article.request").waitFor();
  check(left > 1_000 && (await top()) === 0, "on a phone, where it takes the place of the list, too", left);
  await page.getByRole("link", { name: "Back to the list" }).click();
  await page.locator("article.request").waitFor({ state: "detached" });
  check(Math.abs((await top()) - left) < 2, "and the list is where it was left", [left, await top()]);
  await page.setViewportSize({ width: 1280, height: 800 });
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
  await lost.waitFor({ timeout: 60_000 });
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
  await page.getByText("update: deal/back").waitFor({ timeout: 60_000 });
  await page.getByText("The connection to the desk is lost").waitFor({ state: "hidden" });
  check(true, "and what was missed is caught up without a reload");
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
  check((await page.evaluate(() => scrollY)) === 0, "the next page of a list begins with its head");
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
  for (const part of [firstSteps, arriving, byKeyboard, palette, kept, filtered, puttingOff, many, unshown, undoing, undoingAmongAll, atOnce, scrolled, fromTheHead, pausing, notifying, crowded, silent, away, tabs]) await part(all);
}
