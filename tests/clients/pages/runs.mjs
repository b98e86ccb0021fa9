// Agents that the desk runs: made of a sentence and of a template, looked at and changed before they are made, tested, held by
// policies, deployed, run, followed while they run, and taken away. Whatever can be written is hostile somewhere.

import { check, invited, screens, signedCall, sleep, until } from "../desk.mjs";

const HOSTILE = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1">"'\u202eevil\u200b\u2066{{params.x}}`;
const SENTENCE = "Every weekday at 8:30 read support/feedback.csv, classify it and hand negative cases to a person, at most 50 calls per run. Glorp the frobnicators.";

// Pages look the same whatever is beneath them, so they are looked at once.
let engine = "";
const look = (page, name) => (engine === "sqlite" ? screens(page, name) : undefined);

async function must(page, operation, input) {
  const answer = await signedCall(page, operation, input);
  if (answer.error) throw new Error(`${operation}: ${JSON.stringify(answer.error)}`);
  return answer;
}

async function harmless(page, where) {
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, `hostile text runs nothing and makes no element ${where}`);
}

async function templates({ desk, page }) {
  await page.goto(`${desk.url}/agents`);
  await page.getByRole("link", { name: "make one of a sentence" }).waitFor();
  check(true, "without agents the page says how one is made");
  await page.getByRole("link", { name: "Templates", exact: true }).click();
  check((await page.locator("#agent-templates > li").count()) === 12 && (await page.locator("#policy-templates > li").count()) === 19, "all templates are there, of agents and of policies");
  await look(page, "templates");
  await page.getByLabel("Search templates").fill("mail");
  await page.keyboard.press("Enter");
  await until("fewer templates", async () => (await page.locator("#agent-templates > li").count()) === 1);
  check(await page.locator("#template-email-assistant").isVisible(), "they are searched by their words");
  await page.getByLabel("Search templates").fill("");
  await page.keyboard.press("Enter");
  await page.getByLabel("Category").selectOption("infrastructure");
  await until("one category", async () => (await page.locator("#agent-templates > li").count()) === 3);
  check((await page.locator("#template-backup-agent").isVisible()) && (await page.locator("#policy-templates").count()) === 0, "and narrowed by category");
  await page.goto(`${desk.url}/templates?search=${encodeURIComponent(HOSTILE.slice(0, 60))}`);
  await page.getByText("No template fits").waitFor();
  check(await page.getByRole("link", { name: "make an agent of a sentence" }).isVisible(), "where none fits the page says what to do");
  await harmless(page, "in a search");
  await page.goto(`${desk.url}/templates?kind=policy`);
  check((await page.locator("#policy-templates > li").count()) === 19 && (await page.locator("#agent-templates").count()) === 0, "a kind can be chosen");
  await page.locator("#text-rate-limiting summary").click();
  check((await page.locator("#text-rate-limiting").textContent()).includes("calls_per_minute"), "a template of a policy shows its rules");
}

// A sentence, with everything that is read out of it, changed before it is made.
async function ofASentence({ desk, page, complaints }) {
  const zone = await page.context().newCDPSession(page);
  await zone.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Tokyo" });
  await page.goto(`${desk.url}/make`);
  check(await page.getByRole("button", { name: "Make it" }).isDisabled(), "nothing is made of nothing");
  await page.keyboard.press("n");
  await page.keyboard.type(SENTENCE);
  const sketch = page.locator("#sketch");
  await until("it is read", async () => (await page.getByLabel("Its name").count()) && (await sketch.textContent()).includes("every weekday at 08:30"));
  const told = await sketch.textContent();
  check((await page.locator("#next time").count()) === 3 && told.includes("every weekday at 08:30"), "a sentence is read while it is written: when it runs", told);
  const [moment, shown] = await page.locator("#next time").first().evaluate((time) => [time.dateTime, time.textContent]);
  check(shown.includes("05:30") || shown.includes("17:30"), "with the next runs in the reader's zone", [moment, shown]);
  check((await sketch.locator(".steps li").count()) === 6 && told.includes("Sort steps.rows.items into classes"), "its steps in words", told);
  check((await page.locator("#policy-human-review[data-chosen]").textContent()).includes("Because"), "policies with their reasons");
  check((await page.locator("#assumed").textContent()).includes("word lists"), "what was assumed");
  check((await page.locator("#not-understood").textContent()).includes("frobnicators"), "what was not understood");
  check((await page.locator("#alike li").count()) > 0 && (await page.locator("#alike").textContent()).includes("because of"), "and which templates are like it");
  await page.evaluate(() => scrollTo(0, 0));
  await look(page, "make");
  check((await must(page, "agents_list_agents", {})).agents.length === 0, "and nothing was made by that");

  await page.getByLabel("Its name").fill("no good name!");
  await sketch.getByRole("alert").waitFor();
  check(await page.getByRole("button", { name: "Make it" }).isDisabled(), "what cannot be is said, and not made", await sketch.getByRole("alert").textContent());
  await page.getByLabel("Its name").fill("feedback-reader");
  await page.getByLabel("As cron").fill("0 6 * * *");
  await page.getByRole("button", { name: "My own" }).click();
  await until("the schedule is changed", async () => (await sketch.textContent()).includes("every day at 06:00 Asia/Tokyo"));
  check((await page.locator("#next time").first().textContent()).includes("06:00"), "a changed schedule shows its next runs at once, in the zone that was chosen");
  await must(page, "desk_policy_apply", { document: "policies:\n  - { id: meanwhile, description: put in force by somebody else, rules: [] }\n" });
  await sleep(600);
  check((await page.getByLabel("Its name").inputValue()) === "feedback-reader" && !(await page.getByRole("button", { name: "Make it" }).isDisabled()), "news of the desk take nothing of it away");
  await page.getByLabel("nist-csf").check();
  await until("the policy is taken up", async () => (await page.locator("#policy-nist-csf[data-chosen]").count()) === 1);
  check((await page.getByLabel("Its name").inputValue()) === "feedback-reader", "what was changed before stays");
  await page.locator("#sketch-steps-fold summary").click();
  const steps = page.getByLabel("Its steps, as JSON");
  const before = await steps.inputValue();
  await steps.fill("[{");
  await sketch.getByText("is not valid JSON", { exact: false }).waitFor();
  check(await page.getByRole("button", { name: "Make it" }).isDisabled(), "steps that are no JSON are not made");
  await steps.fill(before.replace("workspace_read_file", "workspace_no_such"));
  await sketch.getByText("workspace_no_such", { exact: false }).first().waitFor();
  check(true, "a step that cannot be done is named");
  await page.getByRole("button", { name: "Back to what was read" }).click();
  await until("it is as it was read", async () => (await page.getByLabel("As cron").inputValue()) === "30 8 * * 1-5");
  check((await steps.inputValue()) === before && !(await page.getByLabel("nist-csf").isChecked()), "what was changed can be taken back");

  await page.getByLabel("Its name").fill("feedback-reader");
  await page.locator("#param-keep").fill("negative");
  await page.getByLabel("nist-csf").check();
  await until("it is read", async () => !(await page.getByRole("button", { name: "Make it" }).isDisabled()) && (await page.locator("#policy-nist-csf[data-chosen]").count()));
  await page.getByRole("button", { name: "Make it" }).click();
  await page.waitForURL(`${desk.url}/agents/feedback-reader`);
  const made = await must(page, "agents_get_agent_status", { agentId: "feedback-reader" });
  check(made.status === "draft" && made.definition.schedule.cron === "30 8 * * 1-5" && made.definition.budget.calls === 50, "what is made is what was shown", made.definition);
  check(made.definition.policies.some(({ policy }) => policy.id === "nist-csf") && made.definition.policies.some(({ policy }) => policy.id === "human-review"), "with the policies that were chosen");
  complaints.splice(0, complaints.length, ...complaints.filter((complaint) => !complaint.includes("a status of 400")));
  await zone.send("Emulation.setTimezoneOverride", { timezoneId: "" });
  await page.goto(`${desk.url}/make?description=${encodeURIComponent(`Read notes.txt every day and tell ${HOSTILE}`)}`);
  await until("a hostile sentence is read", async () => (await page.getByLabel("Its name").count()) === 1);
  check((await sketch.textContent()).includes("\\u{202e}"), "marks that turn it around are made visible");
  await harmless(page, "in a sentence");
}

async function ofATemplate({ desk, page }) {
  await page.goto(`${desk.url}/templates`);
  await page.locator("#template-file-organizer").getByRole("link", { name: "Make one" }).click();
  await page.waitForURL(/\/make\?template=file-organizer/);
  check((await page.locator("#sketch").textContent()).includes("needs something"), "a template says what it needs");
  await page.getByLabel("folder: the folder that it tidies").fill("downloads");
  await until("nothing is needed", async () => !(await page.locator("#sketch").textContent()).includes("needs something"));
  await look(page, "make-template");
  await page.getByRole("button", { name: "Make it" }).click();
  await page.waitForURL(/\/agents\/sort-files/);
  const text = await page.textContent("main");
  check(text.includes("of the template file-organizer") && text.includes("it belongs to the template file-organizer"), "an agent is made of it, with its policies");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "No", exact: true }).click();
  check((await must(page, "agents_list_agents", {})).agents.length === 2, "deleting asks first, and no is no");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.waitForURL(`${desk.url}/agents`);
  check((await page.locator("#made .title").allTextContents()).join() === "feedback-reader", "and yes is yes");
}

// An agent with hostile text wherever there is text.
async function hostile({ desk, page }) {
  const steps = [
    { id: "note", do: "log", with: { text: "first {{params.words}}" } },
    { id: "many", do: "log", for_each: "{{params.lines}}", with: { text: "line {{item}}" } },
    { id: "ask", do: "cowork_propose", with: { domain: "crm.deals", action: "update", target: "deal/1", proposed_change: { note: "{{params.words}}" }, confidence: 0.5, reasoning: "{{params.words}}" } },
    { id: "decided", do: "cowork_wait_for_decision", with: { request_id: "{{steps.ask.proposal_id}}" }, when: { value: "{{params.words}}", is: "not_empty" } },
    { id: "after", do: "log", for_each: "{{params.lines}}", with: { text: "later {{item}}" } },
    { id: "result", do: "set", with: { words: "{{params.words}}" } },
  ];
  const lines = Array.from({ length: 240 }, (_, number) => number);
  const params = { words: HOSTILE, lines, "<img src=x>": HOSTILE };
  await must(page, "agents_create_agent", { description: HOSTILE, name: "walker", steps, params, policies: ["rate-limiting"], budget: { seconds: 600, calls: 50, log_bytes: 1000000 } });
  await page.goto(`${desk.url}/agents`);
  await page.locator("#made-walker").waitFor();
  await harmless(page, "in the list");
  await look(page, "agents-made");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/agents\/(walker|feedback-reader)/);
  check(true, "the list is walked by keyboard");
  await page.goto(`${desk.url}/agents/walker`);
  check((await page.locator(".steps li").count()) === 6 && (await page.textContent(".steps")).includes("for each of params.lines"), "an agent's page has its steps in words");
  await page.locator("#parameters summary").click();
  await page.locator("#steps-json summary").click();
  await harmless(page, "on an agent's page");
  check((await page.textContent(".words")).includes("\\u{202e}"), "and what turns text around is shown");
  await page.evaluate(() => scrollTo(0, 0));
  await look(page, "agent-made");
}

async function changing({ page, complaints }) {
  await page.reload();
  await page.keyboard.press("c");
  await page.getByLabel("When it runs, as cron").fill("15 4 * * *");
  await page.getByRole("button", { name: "Keep the change" }).click();
  await page.getByText("every day at 04:15").first().waitFor();
  const { version, definition } = await must(page, "agents_get_agent_status", { agentId: "walker" });
  check(version === 2 && definition.task === HOSTILE && definition.params.words === HOSTILE, "one thing is changed, and the rest stays as it was");
  await page.locator("#change-budget summary").click();
  await page.getByLabel("Calls of operations").fill("40");
  await page.getByRole("button", { name: "Keep the budget" }).click();
  await until("the budget is changed", async () => (await must(page, "agents_get_agent_status", { agentId: "walker" })).definition.budget.calls === 40);
  // As in a tab that was not read again since an older version.
  await page.locator("main .meta", { hasText: "version 3" }).waitFor();
  await page.locator("#change-budget form").evaluate((form) => {
    form.elements.expectedVersion.value = "1";
    form.elements["budget.calls"].value = "30";
    form.requestSubmit();
  });
  await page.getByText("It is at version 3 by now", { exact: false }).waitFor();
  check((await must(page, "agents_get_agent_status", { agentId: "walker" })).definition.budget.calls === 40, "who looked at an older version changes nothing");
  complaints.splice(0, complaints.length, ...complaints.filter((complaint) => !complaint.includes("a status of 409")));
  await page.reload();
}

async function testing({ page }) {
  await page.keyboard.press("t");
  await page.getByLabel("What is tried, in words").fill(`Everything ${HOSTILE}`);
  await page.getByLabel("What its steps would be answered").fill('{ "ask": { "proposal_id": "x" } }');
  await page.getByRole("button", { name: "Test it" }).click();
  const box = page.locator("#said");
  await until("the test is told", async () => (await box.textContent()).includes("walker: PASSED"));
  const told = await box.textContent();
  check(told.includes("Nothing had an effect") && told.includes("ask: done"), "a test says what each step would do", told.slice(0, 400));
  await page.locator("#tested", { hasText: "test passed" }).waitFor();
  check(true, "and is kept");
  await harmless(page, "in what a test answers");
}

async function policies({ page }) {
  const document = `policies:
  - id: open-doors
    description: lets deals pass
    rules:
      - { name: deals_pass, match: { domain: [crm.deals] }, effect: allow, message: fine }
  - id: closed-doors
    description: deals stay
    rules:
      - { name: deals_stay, match: { domain: [crm.deals] }, effect: deny, message: no }
mappings:
  - { agent_id: walker, domain: "crm.*", policy_id: open-doors }
`;
  await must(page, "desk_policy_apply", { document });
  await page.reload();
  const card = page.locator("#policy-rate-limiting");
  check((await card.textContent()).includes("it was given"), "a policy says why it is there");
  await page.locator("#attach summary").click();
  await page.getByLabel("Which one").selectOption("closed-doors");
  await page.getByRole("button", { name: "Attach it" }).click();
  const told = page.locator("#attached");
  await until("the contradiction is told", async () => (await told.textContent()).includes("contradict each other"));
  check((await page.locator("#policy-closed-doors").count()) === 0, "what contradicts is not attached, and the page says what does", await told.textContent());
  await look(page, "agent-conflict");
  if (!(await page.locator("#attach").getAttribute("open").then((open) => open !== null))) await page.locator("#attach summary").click();
  await page.getByLabel("Which one").selectOption("closed-doors");
  await page.getByLabel("Also if it contradicts").check();
  await page.getByRole("button", { name: "Attach it" }).click();
  await page.locator("#policy-closed-doors").waitFor();
  check((await page.locator("#conflicts").textContent()).includes("deals_stay"), "unless a person says so; then the conflict stays on the page");
  await page.locator("#policy-closed-doors").getByRole("button", { name: "Take away" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("it is gone", async () => (await page.locator("#policy-closed-doors").count()) === 0);
  check(!(await page.locator("#policies").textContent()).includes("deals_stay"), "taken away, it is in conflict with nothing");
  await page.locator("#attach summary").click();
  await page.getByRole("link", { name: "templates of policies" }).click();
  await page.waitForURL(/\/templates\?kind=policy&agent=walker/);
  const template = page.locator("#policy-template-cost-control");
  await template.locator("summary", { hasText: "Attach to an agent" }).click();
  check((await template.getByLabel("To which agent").inputValue()) === "walker", "a template is attached to the agent that one came from");
  await template.locator("#cost-control-daily_budget").fill("7");
  await template.getByRole("button", { name: "Attach it" }).click();
  await until("it is attached", async () => (await page.locator("#attached-cost-control").textContent()).includes("cost-control holds for walker"));
  const { definition } = await must(page, "agents_get_agent_status", { agentId: "walker" });
  check(JSON.stringify(definition.policies.find(({ policy }) => policy.id === "cost-control")).includes("7"), "with the values of its gaps");
}

// A rule wants two people for deployments: the agent waits, and both pages say who is missing.
async function held(all) {
  const { desk, page } = all;
  const other = await invited(all, "Grace", "--role", "owner");
  const rules = "rules:\n  - { name: two_look, match: { kind: agent.deploy }, effect: require_approval, quorum: 2, message: two people look at agents }\n";
  await must(page, "desk_policy_apply", { document: rules });
  await desk.call("scribe", "bridge_send_message", { to: "ada", content: "hello" });
  const made = await desk.call("scribe", "agents_create_agent", { description: "Say hello to Ada", name: "greeter", steps: [{ id: "say", do: "log", with: { text: "hello" } }], policies: [] });
  const asked = await desk.call("scribe", "agents_deploy_agent", { agentId: made.agentId });
  await page.goto(`${desk.url}/agents/greeter`);
  await page.locator("#waiting", { hasText: "0 of 2 have approved, 2 missing" }).waitFor();
  check(true, "a deployment that waits is on the agent's page, with how many are missing");
  await page.locator("#waiting a").click();
  await page.waitForURL(/\/requests\//);
  await page.locator(".standing", { hasText: "0 of 2 people have approved, 2 are missing" }).waitFor();
  await sleep(600);
  await page.keyboard.press("a");
  await page.locator(".standing", { hasText: "1 of 2 people have approved: Ada, 1 is missing" }).waitFor();
  check(true, "the request says who has approved and how many are missing");
  check((await page.getByRole("link", { name: "The agent greeter" }).getAttribute("href")) === "/agents/greeter", "and leads to the agent that is to be deployed");
  await look(page, "request-quorum");
  await other.page.goto(`${desk.url}/requests/${asked.requestId}`);
  await sleep(600);
  await other.page.keyboard.press("a");
  await until("it is deployed", async () => (await must(page, "agents_get_agent_status", { agentId: "greeter" })).status === "deployed");
  check(true, "with the second approval it is deployed");
  await page.goto(`${desk.url}/agents/walker`);
  await page.keyboard.press("d");
  await page.getByRole("button", { name: "Deploy it" }).click();
  const box = page.locator("#said");
  await until("the answer is told", async () => (await box.textContent()).includes("walker is deployed when 2 people approve"));
  check((await box.getByRole("link", { name: "The request that waits" }).getAttribute("href")).startsWith("/requests/"), "a person's own deployment that is held says so, and leads to its request");
  const { request } = await must(page, "agents_get_agent_status", { agentId: "walker" });
  await must(other.page, "desk_request_reject", { request, reason: "not yet" });
  await other.context.close();
  await must(page, "desk_policy_apply", { document: "rules: []" });
}

async function deploying({ page }) {
  await page.reload();
  await page.keyboard.press("d");
  await page.getByRole("button", { name: "Deploy it" }).click();
  await until("it is told", async () => (await page.locator("#said").textContent()).includes("walker is deployed and runs next at"));
  await page.locator(".head", { hasText: "deployed" }).waitFor();
  check((await page.locator("#next time").count()) === 5, "a deployed agent shows its next runs");
  check((await page.locator("#change, #delete").count()) === 0, "and is not changed or deleted");
}

// A run that waits for a person in its middle: what it says is shown while it says it.
async function following({ desk, page }) {
  await page.keyboard.press("r");
  await page.getByLabel("What it is started with").fill(JSON.stringify({ words: HOSTILE }));
  await page.getByRole("button", { name: "Run it" }).click();
  await page.waitForURL(/\/runs\//);
  const run = page.url().split("/").pop();
  const log = page.locator(".log");
  await until("its lines are there, without a reload", async () => (await log.count()) && (await log.textContent()).includes("line 239"));
  check((await log.locator("li").count()) <= 200 && (await page.textContent("#log")).includes("lines came before"), "the log is bounded, and says what is left out");
  const atEnd = () => log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 24);
  check(await atEnd(), "and is at its end");
  check((await page.locator(".badge", { hasText: "running" }).count()) > 0 && (await page.locator("#progress").isVisible()), "with its state and how far it is");
  await page.locator(".banner a", { hasText: "update: deal/1" }).waitFor();
  check(true, "and with what it waits for");
  await look(page, "run-live");
  await log.evaluate((box) => (box.scrollTop = 0));
  await sleep(100);
  const request = (await page.locator(".banner a").first().getAttribute("href")).split("/").pop();
  const { digest } = await must(page, "desk_request_get", { request });
  await must(page, "desk_request_approve", { request, expected_digest: digest });
  await until("what comes later is there, without a reload", async () => (await log.textContent()).includes("later 239"));
  check(!(await atEnd()), "who has scrolled up is not taken to the end");
  await page.locator(".head .badge", { hasText: "done" }).waitFor();
  check((await page.locator("#result").textContent()).includes("owned=1") && (await page.locator("#stop-run").count()) === 0, "it ends with its result, and there is nothing to stop");
  const text = await page.textContent("main");
  check(text.includes("of 40") && text.includes("of 600") && text.includes("What it was started with"), "with what it used of its budget");
  check((await page.locator("#events").textContent()).includes("run.ended") && (await page.locator("#events").textContent()).includes("request.created"), "and its events, and what the agent did meanwhile");
  await harmless(page, "on a run's page");
  await page.getByRole("link", { name: "Earlier lines" }).click();
  await until("earlier lines", async () => (await log.textContent()).includes("line 100"));
  await page.getByRole("link", { name: "The newest" }).click();
  await until("the newest lines", async () => (await log.textContent()).includes("later 239"));
  await page.evaluate(() => scrollTo(0, 0));
  await look(page, "run-done");
  await page.goto(`${desk.url}/case/run/${run}`);
  await page.getByRole("link", { name: "The run", exact: true }).click();
  await page.waitForURL(`${desk.url}/runs/${run}`);
  check(true, "the case of a run leads to its page");
}

async function stopping({ desk, page }) {
  await page.goto(`${desk.url}/agents/walker`);
  await page.keyboard.press("r");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.waitForURL(/\/runs\//);
  await page.locator(".banner a").first().waitFor();
  await page.getByRole("button", { name: "Stop this run" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator(".head .badge", { hasText: "stopped" }).waitFor({ timeout: 30_000 });
  check((await page.textContent("main")).includes("somebody stopped it"), "a run is stopped, after asking");
  await page.keyboard.press("Escape");
  await page.waitForURL(`${desk.url}/agents/walker`);
  await until("both runs are listed", async () => (await page.locator("#runs li").count()) === 2);
  check((await page.textContent("#runs")).includes("stopped"), "and the agent's page lists its runs");
  check((await page.textContent("main")).includes("In the last 30 days: 2 runs, 1 done"), "with how they ended");
}

async function pausing({ desk, page }) {
  await page.keyboard.press("p");
  await page.locator(".head", { hasText: "paused" }).waitFor();
  check((await page.locator("#run-now").count()) === 0, "a paused agent is not started");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Let it go on");
  await page.keyboard.press("Enter");
  await page.locator(".head", { hasText: "deployed" }).waitFor();
  check(true, "and goes on by the palette");
  await page.getByRole("button", { name: "Deny all its acts" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator(".head", { hasText: "all its acts are denied" }).waitFor();
  await page.getByRole("button", { name: "Let it act again" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Deny all its acts" }).waitFor();
  check(true, "the switch that every agent has is there as well");
  await page.getByRole("link", { name: "Compliance of this agent" }).click();
  await page.waitForURL(/\/compliance\?agent=walker/);
  check((await page.locator("#frameworks li").count()) > 0, "its compliance is a link away");
  await page.goto(`${desk.url}/agents/walker`);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator(".head", { hasText: "stopped" }).waitFor();
  check(await page.locator("#delete").isVisible(), "stopped, it can be changed and deleted again");
}

// A list of runs goes on.
async function paged({ desk, page }) {
  await must(page, "agents_deploy_agent", { agentId: "walker" });
  await must(page, "agents_stop_agent", { agentId: "walker" });
  for (let number = 0; number < 11; number++) await must(page, "agents_run_agent", { agentId: "greeter" });
  await page.goto(`${desk.url}/agents/greeter`);
  await until("ten runs", async () => (await page.locator("#runs li").count()) === 10);
  await page.locator("#runs").getByRole("link", { name: "Show more" }).click();
  await until("all runs", async () => (await page.locator("#runs li").count()) === 11);
  check(true, "past runs are paged");
}

async function lookingOn(all) {
  const { desk } = all;
  const { context, page } = await invited(all, "Vera", "--role", "viewer");
  await page.goto(`${desk.url}/agents/walker`);
  await page.getByText("Your role looks on").waitFor();
  check((await page.locator("#deploy, #test, #change, #delete, #attach").count()) === 0, "who looks on changes no agents");
  await page.goto(`${desk.url}/make?template=api-monitor`);
  check((await page.locator("#make-it").count()) === 0 && (await page.getByLabel("Its name").count()) === 1, "but may see what would be made");
  await page.goto(`${desk.url}/runs/no-such-run`);
  await page.getByText("there is no run no-such-run for you").waitFor();
  check(true, "a run that nobody knows is not found");
  await context.close();
}

export default async function (all) {
  engine = all.engine;
  await templates(all);
  await ofASentence(all);
  await ofATemplate(all);
  await hostile(all);
  await changing(all);
  await testing(all);
  await policies(all);
  await held(all);
  await deploying(all);
  await following(all);
  await stopping(all);
  await pausing(all);
  await paged(all);
  await lookingOn(all);
}
