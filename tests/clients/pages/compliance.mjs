// Compliance: agents, frameworks with their scores, controls with what shows them, and reports to take along.

import { check, screens, signedCall, until } from "../desk.mjs";

async function registered(page) {
  const answer = await signedCall(page, "desk_agent_add", { agent: "clerk", note: "answers letters" });
  if (answer.error) throw new Error(JSON.stringify(answer));
}

async function nobody({ desk, page }) {
  await page.goto(`${desk.url}/compliance`);
  await page.getByText("No agent yet").waitFor();
  check(true, "without agents the page says so");
}

async function frameworks({ desk, page }) {
  await page.goto(`${desk.url}/agents/clerk`);
  await page.getByRole("link", { name: "How it stands against frameworks" }).click();
  await page.waitForURL(/\/compliance\?agent=clerk/);
  check((await page.locator("#frameworks li").count()) === 8, "an agent has a line for each framework");
  const line = await page.locator("#framework-PCI_DSS").textContent();
  check(line.includes("gaps") && line.includes("%") && line.includes("not met"), "with verdict, score and counts", line);
  await screens(page, "compliance");
}

async function controls({ desk, page }) {
  await page.goto(`${desk.url}/compliance/PCI_DSS?agent=clerk`);
  const card = page.locator("[id='control-Req-3']");
  check((await card.getAttribute("open")) !== null && (await card.textContent()).includes("not met"), "what is not met is open");
  check((await card.textContent()).includes("no rule in force for this agent answers so") && (await card.textContent()).includes("pci-dss-payments"), "with why, and what to do");
  const rules = "rules:\n  - { name: no_cards, when: \"holds('card') || fields.exists(name, name == 'cvv')\", effect: deny, message: no cards }\n";
  const applied = await signedCall(page, "desk_policy_apply", { document: rules });
  if (applied.error) throw new Error(JSON.stringify(applied));
  await until("the page shows the new rule", async () => (await card.textContent()).includes("no_cards"));
  check((await card.locator("summary").textContent()).includes("met") && !(await card.locator("summary").textContent()).includes("not met"), "a rule that answers so makes it met, without a reload");
  await page.goto(`${desk.url}/compliance/SOC2?agent=clerk`);
  await page.locator("[id='control-CC6.2'] summary").click();
  await page.locator("[id='control-CC6.2'] a", { hasText: "Event" }).first().click();
  await page.waitForURL(/\/record\/\d+/);
  check((await page.textContent("main")).includes("agent.registered"), "evidence leads to its event");
  await page.goto(`${desk.url}/compliance/SOC2?agent=clerk`);
  check((await page.textContent("main")).includes("What no program can attest"), "and the page says what no program attests");
  await screens(page, "compliance-controls");
}

async function reports({ desk, page }) {
  await page.goto(`${desk.url}/compliance/SOC2?agent=clerk`);
  for (const [name, begin, ending] of [["HTML", "<!doctype html>", ".html"], ["PDF", "%PDF-", ".pdf"], ["CSV", "framework,agent", ".csv"], ["Bundle with proofs", '{"', ".jsonl"]]) {
    const waits = page.waitForEvent("download");
    await page.locator("#downloads").getByRole("link", { name, exact: true }).click();
    const file = await waits;
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("latin1");
    check(text.startsWith(begin) && file.suggestedFilename().endsWith(ending), `the report comes as ${name}`, [file.suggestedFilename(), text.slice(0, 60)]);
  }
}

export default async function (all) {
  await nobody(all);
  await registered(all.page);
  await frameworks(all);
  await controls(all);
  await reports(all);
}
