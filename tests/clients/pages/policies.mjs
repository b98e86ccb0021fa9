// Policies: what is in force and how it came about, a draft that is judged as one types, and why an act got its answer.

import { check, screens, signedCall, until } from "../desk.mjs";
import { decided } from "./agents.mjs";

const HOSTILE = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1"> \u202eevil\u200b\u2066 ${"long ".repeat(40)}`;
const FIRST = `policies:
  - id: crm-write
    description: What agents may change
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500, reason: ${JSON.stringify(HOSTILE)} }
      - name: no_night
        match: { domain: [crm.*] }
        when: time.hour > 24
        effect: require_approval
        quorum: 2
        message: Not at night
    tests:
      - { name: a large one is denied, act: { arguments: { amount: 750 } }, mode: deny }
mappings:
  - { agent_id: "*", domain: crm.*, policy_id: crm-write }
authority:
  volume_cap: 40
`;

const judged = (page) => page.locator("#draft > [data-state]");
const text = (page) => page.getByLabel("The policies, mappings and settings");

async function stateIs(page, state) {
  await until(`the draft is ${state}`, async () => (await judged(page).getAttribute("data-state").catch(() => null)) === state);
}

async function safe(page, where) {
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, `${where}: hostile text runs nothing and makes no element`);
}

async function empty({ desk, page }) {
  await page.goto(`${desk.url}/policies`);
  await page.getByText("No policy is in force").waitFor();
  await page.getByRole("link", { name: "Write the first one" }).click();
  await page.waitForURL(/\/policies\/edit/);
  await stateIs(page, "same");
  check(await page.getByRole("button", { name: "Put in force" }).isDisabled(), "what is in force already cannot be put in force");
}

async function wrong({ desk, page }) {
  await page.goto(`${desk.url}/policies/edit`);
  await stateIs(page, "same");
  const broken = "policies:\n  - id: crm\n    rules:\n      - { field: amount, constraint: value_rang, max: 5 }\n";
  await text(page).fill(broken);
  await stateIs(page, "wrong");
  const problem = page.getByRole("button", { name: "Line 4, column" });
  check(await problem.isVisible(), "a problem has its line and column", await page.locator("#draft").textContent());
  check(await page.getByRole("button", { name: "Put in force" }).isDisabled(), "and what is wrong cannot be put in force");
  await problem.click();
  const selected = await page.evaluate(() => {
    const area = document.getElementById("document");
    return { text: area.value.slice(area.selectionStart, area.selectionEnd), focused: document.activeElement === area };
  });
  check(selected.focused && selected.text.startsWith("value_rang"), "the problem leads to its place", selected);
  await screens(page, "policies-wrong");
  await text(page).pressSequentially("value_range");
  await until("the rest of the line was replaced", async () => (await text(page).inputValue()).includes("constraint: value_range"));
  await page.goto(`${desk.url}/policies`);
  await page.goto(`${desk.url}/policies/edit`);
  await until("the draft is back", async () => (await text(page).inputValue()).includes("constraint: value_range"));
  check(true, "a draft is still there after a look at another page");
  await page.getByRole("button", { name: "Back to what is in force" }).click();
  await stateIs(page, "same");
  check(true, "the draft can be thrown away");
}

async function tightening(all) {
  const { desk, page } = all;
  await decided(all, "seller", [true, false]);
  await desk.propose("seller", "deal/large", { amount: 900 });
  await desk.propose("seller", "deal/small", { amount: 100 });
  await page.goto(`${desk.url}/policies/edit`);
  await text(page).fill(FIRST);
  await stateIs(page, "tightens");
  const told = await page.locator("#draft").textContent();
  check(told.includes("only tightens") && told.includes("+ policy crm-write"), "a draft that only tightens says so, with what changes", told);
  check(told.includes("1 passed"), "its cases are run");
  check(told.includes("Of 4 past acts") && told.includes("1 stricter") && told.includes("0 looser") && told.includes("3 the same"), "and it is tried on past decisions", told);
  const row = await page.locator("#draft tbody tr").textContent();
  check(row.includes("seller in crm.deals") && row.includes("escalate") && row.includes("deny") && row.includes("value_range_amount"), "with those that would differ", row);
  check((await page.locator("#draft tbody a").getAttribute("href")).startsWith("/requests/"), "and what they became");
  await safe(page, "the draft");
  const cut = await page.evaluate(async (body) => (await fetch("/policies/draft?acts=1", { method: "POST", body })).text(), FIRST);
  check(cut.includes("Of 1 past act,") && cut.includes("Look further back"), "what was not looked at is said, and can be");
  await screens(page, "policies-draft");
  await page.getByRole("button", { name: "Put in force" }).click();
  await page.getByText("In force", { exact: true }).waitFor();
  await stateIs(page, "same");
  const { policies } = await signedCall(page, "desk_policy_list", {});
  check(policies.length === 1 && policies[0].policy === "crm-write", "and is in force", policies);
}

async function inForce({ desk, page }) {
  await page.goto(`${desk.url}/policies`);
  const line = await page.locator("#policy-crm-write").textContent();
  check(line.includes("version 1") && line.includes("2 rules") && line.includes("accepted by Ada"), "a policy in force has its version and who accepted it", line);
  const tables = await page.locator("main table").allTextContents();
  check(tables[0].includes("all") && tables[0].includes("crm.*") && tables[0].includes("crm-write"), "mappings are a table", tables);
  check(tables[1].includes("volume cap") && tables[1].includes("40"), "and so are settings");
  await screens(page, "policies");
  await page.goto(`${desk.url}/policies/edit`);
  await stateIs(page, "same");
  check((await text(page).inputValue()).startsWith("policies:\n"), "what is in force comes back as YAML that means the same", (await text(page).inputValue()).slice(0, 60));
}

async function loosening({ desk, page }) {
  await page.goto(`${desk.url}/policies/edit`);
  await stateIs(page, "same");
  await text(page).fill(FIRST.replace("max: 500", "max: 5000").replace("a large one is denied", "a large one was denied"));
  await stateIs(page, "loosens");
  const told = await page.locator("#draft").textContent();
  check(told.includes("loosens") && told.includes("1 failed") && told.includes("expected deny, but it is"), "a draft that loosens says so, and which case fails", told);
  await page.getByRole("button", { name: "Put in force" }).click();
  await page.getByText("Some of it loosens, or may loosen", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "No", exact: true }).click();
  check((await signedCall(page, "desk_policy_get", { policy: "crm-write" })).version === 1, "it asks first, and no is no");
  // Somebody else puts something in force meanwhile: the text stays, and is judged against that.
  const answer = await signedCall(page, "desk_policy_apply", { document: "authority: { volume_cap: 30 }" });
  if (answer.error) throw new Error(JSON.stringify(answer));
  await until("it is judged anew", async () => (await page.locator("#draft").textContent()).includes("volume_cap: 30 → 40"));
  check((await text(page).inputValue()).includes("max: 5000"), "news do not touch what one writes, and judge it anew");
  await page.getByRole("button", { name: "Put in force" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("In force", { exact: true }).waitFor();
  check((await signedCall(page, "desk_policy_get", { policy: "crm-write" })).version === 2, "and then it is in force");
}

async function versions({ desk, page }) {
  await page.goto(`${desk.url}/policies/crm-write`);
  await safe(page, "the policy");
  const rules = await page.locator(".rules").textContent();
  check(rules.includes("amount must be a number from 0 up to 5000") && rules.includes("\\u{202e}"), "rules are in words", rules);
  check(rules.includes("no_night for domain crm.*") && rules.includes("2 people have to approve"), "general ones too");
  const diff = await page.locator(".lines").textContent();
  check(/^-\s+max: 500$/m.test(diff) && /^\+\s+max: 5000$/m.test(diff), "versions are compared line by line", diff);
  await page.evaluate(() => document.querySelector(".compare").scrollIntoView());
  await screens(page, "policy-versions");
  await page.getByLabel("to", { exact: true }).selectOption("1");
  await page.getByText("Both say the same.").waitFor();
  check(page.url().includes("to=1"), "any two of them");
  await page.getByRole("link", { name: "Version 1" }).click();
  await page.locator(".head", { hasText: "past" }).waitFor();
  check(!(await page.locator(".rules").textContent()).includes("5000"), "and a past one is shown as it was");
  await page.evaluate(() => scrollTo(0, 0));
  await screens(page, "policy");
  await page.goto(`${desk.url}/policies/nothing`);
  check(await page.getByText("there is no policy nothing").isVisible(), "one that never was is not found");
}

// A policy may have the name of a page, and more rules than a page begins with.
async function names({ desk, page }) {
  const { body } = await signedCall(page, "desk_policy_get", {});
  const rules = Array.from({ length: 120 }, (_, number) => ({ field: `f${number}`, constraint: "readonly" }));
  const document = JSON.stringify({ ...body, policies: [...body.policies, { id: "edit", rules }] });
  const answer = await signedCall(page, "desk_policy_apply", { document });
  if (answer.error) throw new Error(JSON.stringify(answer));
  await page.goto(`${desk.url}/policies`);
  await page.locator("#policy-edit a").click();
  await page.locator("h1", { hasText: "edit" }).waitFor();
  check((await page.locator(".rules li").count()) === 100, "a policy that is called like a page is found, and its rules begin with a hundred");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("all rules", async () => (await page.locator(".rules li").count()) === 120);
}

// A rule may look at what else an act is: the kind, the tool, where, the field, the cost.
async function whyMore({ desk, page }) {
  const { body } = await signedCall(page, "desk_policy_get", {});
  const rules = [
    { name: "no_wiping", match: { tool: "notes_wipe" }, effect: "deny", message: "nobody wipes notes" },
    { name: "costly", when: "act.cost > 5.0", effect: "deny", message: "that is too costly" },
  ];
  const apply = (document) => signedCall(page, "desk_policy_apply", { document: JSON.stringify(document) });
  const before = body.rules ?? [];
  const applied = await apply({ rules: [...before, ...rules] });
  if (applied.error) throw new Error(JSON.stringify(applied));
  await page.goto(`${desk.url}/policies/why`);
  await page.locator("#more summary").click();
  await page.getByLabel("Who would act").fill("seller");
  await page.getByLabel("With which tool").fill("notes_wipe");
  await page.getByRole("button", { name: "Explain the act" }).click();
  await page.locator("#answer", { hasText: "nobody wipes notes" }).waitFor();
  check(!(await page.locator("#answer").textContent()).includes("too costly"), "an act is asked about with its tool");
  await page.getByLabel("What it would cost").fill("5.5");
  await page.getByRole("button", { name: "Explain the act" }).click();
  await page.locator("#answer", { hasText: "that is too costly" }).waitFor();
  check(await page.getByLabel("With which tool").isVisible(), "and its cost; what was asked stays in sight");
  await screens(page, "policies-why-more");
  await apply({ rules: before });
  await page.goto(`${desk.url}/policies/why?agent=seller&domain=crm.deals&change=${encodeURIComponent('{"amount": 90000}')}`);
  await page.locator("section#answer").waitFor();
}

// What was denied is no request: its event leads to what it would be answered now.
async function whyDenied({ desk, page }) {
  const act = { domain: "crm.deals", action: "update", target: "deal/huge", proposed_change: '{"amount": 90000}', confidence: 0.9, reasoning: "They pay." };
  const { mode } = await desk.call("seller", "cowork_propose", act);
  check(mode === "deny", "an act is denied", mode);
  await page.goto(`${desk.url}/record?kind=act.denied`);
  await page.locator("[data-row]").first().click();
  await page.getByRole("link", { name: "What the desk would say now" }).click();
  await page.locator("section#answer").waitFor();
  const told = await page.locator("#answer").textContent();
  check(told.includes("seller: deny") && told.includes("value_range_amount"), "an event of what was denied leads to why", told);
  check((await page.getByLabel("To what").inputValue()) === "deal/huge" && (await page.getByLabel("With which tool").inputValue()) === "cowork_propose", "with the act as it was");
}

async function why({ desk, page }) {
  await page.goto(`${desk.url}/policies/why`);
  await page.getByLabel("Who would act").fill("seller");
  await page.getByLabel("In which domain").fill("crm.deals");
  await page.getByLabel("The proposed change, as JSON").fill('{"amount": 90000');
  await page.getByRole("button", { name: "Explain the act" }).click();
  await page.getByText("The proposed change is not valid JSON").waitFor();
  await page.getByLabel("The proposed change, as JSON").fill('{"amount": 90000}');
  await page.getByRole("button", { name: "Explain the act" }).click();
  await page.locator("section#answer").waitFor();
  const told = await page.locator("#answer").textContent();
  check(told.includes("deny") && told.includes("value_range_amount") && told.includes("crm-write v2"), "an act is explained by its rules", told);
  check(told.includes("trust"), "and by everything else that has a say");
  await whyMore({ desk, page });
  await safe(page, "the answer");
  await screens(page, "policies-why");
  const { requests } = await signedCall(page, "desk_request_list", { requester: "seller", search: "deal/large" });
  await page.goto(`${desk.url}/requests/${requests[0].request}`);
  check((await page.locator("footer code").first().getAttribute("title")) === requests[0].request, "a request's page has its whole id");
  await page.getByRole("link", { name: "What the desk would say now" }).click();
  await page.locator("#answer").waitFor();
  const then = await page.locator("#answer").textContent();
  check(then.includes("when it was asked, the answer was escalate"), "and a request by what holds now and held then", then);
  await whyDenied({ desk, page });
  await page.goto(`${desk.url}/policies/why?request=nothing`);
  check(await page.getByText("there is no request nothing").isVisible(), "an id that nobody has is said");
}

export default async function (all) {
  for (const part of [empty, wrong, tightening, inForce, loosening, versions, why, names]) await part(all);
}
