// The tools: every operation as a form, with its answer, what it wrote, and what went wrong.

import { check, fill, invited, screens, until } from "../desk.mjs";

async function listing({ desk, page }) {
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.waitForURL(`${desk.url}/tools`);
  check(await page.getByText("This is what agents can do here.").isVisible(), "the page says what it is for");
  const all = await page.locator("[data-row]").count();
  check(all > 90, "every operation is there", all);
  await screens(page, "tools");
  await page.keyboard.press("/");
  await page.keyboard.type("Propose");
  await page.keyboard.press("Enter");
  await until("few are left", async () => (await page.locator("[data-row]").count()) < 20);
  check((await page.locator("[data-row]").allTextContents()).some((text) => text.includes("cowork_propose")), "and found by words");
  await page.goto(`${desk.url}/tools?search=${encodeURIComponent("<img src=x>")}`);
  await page.getByText("No tool fits").waitFor();
  await page.goto(`${desk.url}/tools/no_such_tool`);
  await page.getByText("There is no such thing here").waitFor();
  check(true, "what is not there is said not to be");
}

async function calling({ desk, page }) {
  await page.goto(`${desk.url}/tools`);
  await page.getByRole("link", { name: "send an agent a message" }).click();
  await page.locator("[name=to]").fill("code");
  await page.locator("[name=content]").fill("\u202e<script>globalThis.owned=1</script><img src=x>");
  // What this machine's clock says is no matter.
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 2 * 3600_000;
  });
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await page.getByText("What it wrote into the record").waitFor();
  const answer = page.locator(".answer");
  check((await answer.locator("li a").allTextContents()).join() === "message.sent", "an answer comes with the events that it made");
  await screens(page, "tools-message");
  await answer.locator("li a").click();
  await page.getByRole("heading", { name: "An actor sent a message" }).waitFor();
  check(await page.getByText("signed", { exact: true }).isVisible(), "which lead to the event, signed by this browser");
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main img").count()) === 0, "and hostile text in it stays text");
}

// What agents propose is for agents; people see what the desk would decide.
async function deciding({ desk, page }) {
  await page.goto(`${desk.url}/tools/cowork_propose`);
  const fields = { domain: "crm.deals", action: "update", target: "deal/9 \u202e<img src=x>", proposed_change: "{}", confidence: "0.9", reasoning: "To learn." };
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value);
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await until("the refusal", async () => (await page.locator("#problem-cowork_propose").textContent()).startsWith("Only agents propose"));
  check(true, "what is for agents only says so");
  await page.goto(`${desk.url}/tools/desk_policy_explain`);
  await page.locator("[name=act]").fill('{"kind":"propose","domain":"crm.deals","action":"update \u202e<img src=x>","target":"deal/9"}');
  await page.locator("[name=agent]").fill("code");
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await until("an answer or a problem", async () => (await page.locator(".answer .block").count()) === 1 || (await page.locator("form.tool [role=alert]").textContent()) !== "");
  check((await page.locator(".answer").textContent()).includes("The desk's decision: "), "a decision is said in words", await page.locator("form.tool").locator("xpath=..").textContent());
  check((await page.locator("main img").count()) === 0, "and an object is sent as JSON");
  await screens(page, "tools-decision");
}

// A field of any type: what is JSON is sent as JSON, and the rest as a text.
async function anything({ desk, page }) {
  await page.goto(`${desk.url}/tools/cowork_validate_policy`);
  for (const [name, value] of Object.entries({ agent_id: "code", domain: "crm.deals", field: "level" })) await page.locator(`[name=${name}]`).evaluate((field, value) => (field.value = value), value);
  for (const [typed, sent] of [["3", 3], ["true", true], ["three", "three"]]) {
    await page.locator("[name=proposed_value]").fill(typed);
    const [request] = await Promise.all([page.waitForRequest(`${desk.url}/api/cowork_validate_policy`), page.getByRole("button", { name: "Call it as yourself" }).click()]);
    check(request.postDataJSON().proposed_value === sent, `${typed} is sent as what it is`, request.postData());
  }
}

async function wrong({ desk, page }) {
  await page.goto(`${desk.url}/tools/bridge_create_task`);
  await page.locator("[name=to]").fill("code");
  await page.locator("[name=title]").fill("Try the tools");
  await page.locator("[name=depends_on]").fill("[not json");
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  const problem = page.locator("#problem-bridge_create_task");
  await until("a problem is told", async () => (await problem.textContent()).includes("is not valid JSON"));
  check(true, "what is no JSON is told beside the form");
  await page.locator("[name=depends_on]").fill('["no-such-task"]');
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await until("the desk's own problem", async () => (await problem.textContent()) !== "" && !(await problem.textContent()).includes("JSON"));
  check((await page.locator(".answer").textContent()) === "", "what the desk refuses is told beside the form, and no answer stays", await problem.textContent());
  check((await page.locator("[name=title]").inputValue()) === "Try the tools", "and what was typed stays");
  await screens(page, "tools-problem");
  await page.locator("[name=depends_on]").fill("");
  await page.locator("[name=priority]").selectOption("high");
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await page.getByText("What it wrote into the record").waitFor();
  check((await problem.textContent()) === "", "a problem that is over is gone");
  const answer = await page.locator(".answer .block").textContent();
  check(answer.includes('"priority": "high"') || answer.includes("task_id"), "the answer is shown as JSON", answer);
  await page.getByRole("link", { name: "Look at the task" }).click();
  await page.getByRole("heading", { name: "Try the tools" }).waitFor();
  check(true, "with a link to what it made");
}

async function reading({ desk, page }) {
  await page.goto(`${desk.url}/tools/desk_record_list`);
  await page.locator("[name=kind]").fill("task.created");
  await page.locator("[name=limit]").fill("1");
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await until("an answer", async () => (await page.locator(".answer .block").count()) === 1);
  const { events } = JSON.parse(await page.locator(".answer .block").textContent());
  check(events.length === 1 && events[0].kind === "task.created", "numbers are sent as numbers");
  check((await page.getByText("What it wrote").count()) === 0, "what only looks writes nothing");
}

// Presence is asked for by itself, and what overwrites asks first.
async function presence(all) {
  const { desk, page } = all;
  const { context, page: other } = await invited(all, "Vera", "--role", "viewer");
  await other.goto(`${desk.url}/tools`);
  const names = await other.locator("[data-row] code").allTextContents();
  check(names.includes("desk_record_list") && !names.includes("desk_record_erase") && !names.includes("bridge_send_message"), "everybody sees what they may call");
  await other.goto(`${desk.url}/tools/desk_record_erase`);
  await other.getByText("Your role, viewer, may not call this.").waitFor();
  check((await other.locator("form.tool").count()) === 0, "and gets no form for the rest");
  await context.close();
  await page.goto(`${desk.url}/tools/desk_record_erase`);
  await page.locator("[name=seq]").fill("999999");
  await page.locator("[name=reason]").fill("none");
  await page.getByRole("button", { name: "Call it as yourself" }).click();
  await page.getByText("It may undo or overwrite something.").waitFor();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("a problem is told", async () => (await page.locator("#problem-desk_record_erase").textContent()).includes("no event 999999"));
  check(true, "what overwrites asks first, and its refusal is told");
}

export default async function (all) {
  for (const part of [listing, calling, deciding, anything, wrong, reading, presence]) await part(all);
  // The network log of an input that was meant to be wrong is no fault of a page.
  const unmeant = all.complaints.filter((complaint) => !complaint.includes("status of 400"));
  all.complaints.splice(0, all.complaints.length, ...unmeant);
}
