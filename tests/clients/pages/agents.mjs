// Agents and trust: who is there, tokens that are shown once, pausing one, and the score over time.

import { HOSTILE, check, fill, invited, screens, signedCall, until } from "../desk.mjs";

const rows = (page) => page.locator("#agents .title").allTextContents();

// Proposals that the person decides, so that trust moves.
export async function decided({ desk, page }, agent, answers, more = {}) {
  for (const [number, approve] of answers.entries()) {
    const request = await desk.propose(agent, `deal/${number}`, { note: number }, { confidence: approve ? 0.9 : 0.6, ...more });
    const { digest } = await signedCall(page, "desk_request_get", { request });
    const answer = approve
      ? await signedCall(page, "desk_request_approve", { request, expected_digest: digest })
      : await signedCall(page, "desk_request_reject", { request, reason: "no", type: "agent_wrong" });
    if (answer.error) throw new Error(JSON.stringify(answer));
  }
}

async function empty({ desk, page }) {
  await page.goto(`${desk.url}/agents`);
  await page.getByText("No agent yet").waitFor();
  check(await page.getByText("deskmate connect claude-code").isVisible(), "without agents the page says how to connect one");
  await page.goto(`${desk.url}/trust`);
  check(await page.getByText("Nothing is known of any agent yet").isVisible(), "and so does trust");
  await page.goto(`${desk.url}/agents/nobody`);
  check(await page.getByText("no agent nobody is known here").isVisible(), "an agent that nobody knows is not found");
}

async function openMode(all) {
  const { desk, page } = all;
  await page.goto(`${desk.url}/agents`);
  await desk.call("scribe", "bridge_send_message", { to: "code", content: "hello" });
  await page.getByText("scribe").waitFor();
  check(true, "an agent that only sent a message is listed, without a reload");
  await decided(all, "scribe", [true, true, true, false, true]);
  await page.goto(`${desk.url}/agents`);
  const line = await page.locator("#agent-scribe").textContent();
  check(line.includes("not registered") && line.includes("crm.deals escalate") && line.includes("last active"), "with its state, domains and last activity", line);
}

async function paged({ desk, page }) {
  for (let number = 0; number < 50; number++) await desk.call(`zz-${number}`, "bridge_send_message", { to: "scribe", content: "hello" });
  // On PostgreSQL what was done last is sealed a moment later, and only then known.
  await until("the first fifty", async () => {
    await page.goto(`${desk.url}/agents`);
    return (await rows(page)).length === 50;
  });
  check(true, "a long list begins with fifty");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("all are there", async () => (await rows(page)).length === 51);
  await page.keyboard.press("j");
  check(await page.evaluate(() => document.activeElement.textContent.startsWith("scribe")), "j goes into the list");
}

// More agents than one page shows, and more trust: both lists go on to their end.
async function farOn(all) {
  const { desk, page } = all;
  const names = Array.from({ length: 520 }, (_, number) => `zzz-${String(number).padStart(3, "0")}`);
  for (let at = 0; at < names.length; at += 20) await Promise.all(names.slice(at, at + 20).map((name) => desk.call(name, "bridge_send_message", { to: "scribe", content: "hello" })));
  await until("the last one is known", async () => (await signedCall(page, "desk_agent_list", { unregistered: true, agent: names.at(-1) })).agents.length === 1);
  await desk.settle();
  await page.goto(`${desk.url}/agents?rows=450`);
  await page.getByRole("link", { name: "Show more" }).click();
  await until("five hundred", async () => (await rows(page)).length === 500);
  const first = await rows(page);
  await page.getByRole("link", { name: "Show the next ones" }).click();
  await until("another page", async () => (await rows(page)).length === 50);
  await page.getByRole("link", { name: "Show more" }).click();
  await until("the last one", async () => (await rows(page)).at(-1) === names.at(-1));
  const listed = [...first, ...(await rows(page))];
  check(listed.length === 571 && new Set(listed).size === 571, "a list of agents goes on to its end, without a gap and with nobody twice", listed.length);
  await page.getByRole("link", { name: "Back to the first ones" }).click();
  await until("the first ones", async () => (await rows(page)).length === 50);
  for (const name of names.slice(0, 51)) await decided(all, name, [true]);
  const trusted = () => page.locator("#trusted .title").allTextContents();
  await page.goto(`${desk.url}/trust`);
  check((await trusted()).length === 50, "trust begins with fifty rows");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("all of it", async () => (await trusted()).length === 52);
  const { next_cursor: cursor } = await signedCall(page, "desk_trust_list", { limit: 50 });
  await page.goto(`${desk.url}/trust?${new URLSearchParams({ cursor })}`);
  check((await trusted()).length === 2, "and goes on from where a page of it ends", await trusted());
  await page.getByRole("link", { name: "Back to the first ones" }).click();
  await until("its first rows", async () => (await trusted()).length === 50);
}

// Agents that the desk runs are a list of their own, and go on by themselves.
async function made({ desk, page }) {
  for (let number = 0; number < 51; number++) {
    const answer = await signedCall(page, "agents_create_agent", { description: "Say hello", name: `made-${number}`, steps: [{ id: "say", do: "log", with: { text: "hello" } }], policies: [] });
    if (answer.error) throw new Error(JSON.stringify(answer.error));
  }
  const listed = () => page.locator("#made .title").allTextContents();
  await page.goto(`${desk.url}/agents`);
  const connected = (await rows(page)).length;
  check((await listed()).length === 50, "agents that the desk runs begin with fifty");
  await page.getByRole("link", { name: "Show more" }).first().click();
  await until("all that were made", async () => (await listed()).length === 51);
  check((await rows(page)).length === connected, "and more of them leave the others as they are");
  const { next_cursor: cursor } = await signedCall(page, "agents_list_agents", { limit: 50 });
  await page.goto(`${desk.url}/agents?${new URLSearchParams({ made_cursor: cursor })}`);
  check((await listed()).join() === "made-0" && (await page.locator("#agents").count()) === 0, "a page of them goes on from where another one ends", await listed());
}

async function oneAgent({ desk, page }) {
  await page.goto(`${desk.url}/agents/scribe`);
  const row = await page.locator("[id='domain-crm.deals-unverified']").textContent();
  check(row.includes("80 % of 5") && row.includes("95 %:") && row.includes("5 of 50"), "an agent's page has its domains with sample, interval and volume", row);
  check((await page.getByRole("link", { name: "update: deal/4" }).getAttribute("href")).startsWith("/requests/"), "its requests lead to their pages");
  check(await page.getByText("cowork_propose").or(page.getByText("request.created")).first().isVisible(), "and its events are listed");
  await screens(page, "agent");
  await page.locator("th a", { hasText: "crm.deals" }).click();
  await page.waitForURL(/\/trust\?agent=scribe/);
}

async function trust({ desk, page }) {
  await page.goto(`${desk.url}/trust?agent=scribe&domain=crm.deals`);
  await until("five points", async () => (await page.locator(".chart").first().locator("circle").count()) === 5);
  check(true, "every change is a point");
  const titles = await page.locator(".chart circle title").allTextContents();
  check(titles.some((title) => title.includes("overridden -0.080")) && titles.some((title) => title.includes("approved +0.020")), "with what it was", titles);
  check((await page.locator("#changes tbody tr").count()) === 5, "and a row of the table");
  const first = await page.locator("#changes tbody tr").first().textContent();
  check(first.includes("approved") && first.includes("+0.020") && first.includes("Ada"), "with impact and who", first);
  const desc = await page.locator(".chart desc").textContent();
  check(desc.includes("4 changes raised it and 1 lowered it"), "the chart is told in words", desc);
  const marks = await page.locator(".chart").first().locator("text").allTextContents();
  check(["0", "0.5", "0.8", "1", "people decide", "may act alone"].every((mark) => marks.includes(mark)), "its axis has the thresholds", marks);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Tokyo" });
  await page.reload();
  const [axis, expected] = await page.locator(".chart text[data-time]").evaluateAll((marks) => {
    const zone = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "Asia/Tokyo" });
    return [marks.map((mark) => mark.textContent), marks.map((mark) => zone.format(new Date(mark.dataset.time)))];
  });
  check(axis.length === 2 && axis.join() === expected.join(), "and times in the reader's zone", [axis, expected]);
  const point = await page.locator(".chart circle title").first().textContent();
  check(!point.includes("UTC") && /\d:\d\d/.test(point), "as every point has", point);
  await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "" });
  await devtools.detach();
  await page.reload();
  check((await page.locator(".chart.square circle").count()) === 2 && (await page.getByText("Brier score").count()) > 0, "calibration has a point for each confidence, and the Brier score");
  await page.getByRole("button", { name: "Recompute from the record" }).click();
  await page.getByText("The record gives the same.").waitFor();
  check(true, "the record gives the same score again");
  await desk.propose("scribe", "deal/live", { note: "live" }).then(async (request) => {
    const { digest } = await signedCall(page, "desk_request_get", { request });
    await signedCall(page, "desk_request_approve", { request, expected_digest: digest });
  });
  await until("the chart has another point", async () => (await page.locator(".chart").first().locator("circle").count()) === 6);
  check(await page.getByText("The record gives the same.").isVisible(), "a new change shows at once, and what was recomputed stays");
  await page.evaluate(() => scrollTo(0, 0));
  await screens(page, "trust");
  await page.locator(".chart.square").scrollIntoViewIfNeeded();
  await screens(page, "trust-below");
}

// More changes than a page begins with.
async function longHistory(all) {
  const { desk, page } = all;
  const answer = await signedCall(page, "desk_policy_apply", { document: "authority: { volume_cap: 500 }" });
  if (answer.error) throw new Error(JSON.stringify(answer));
  await decided(all, "busy", Array.from({ length: 101 }, (_, number) => number % 3 !== 0));
  await page.goto(`${desk.url}/trust?agent=busy&domain=crm.deals`);
  await page.getByText("Only the newest 100 changes are drawn").waitFor();
  check((await page.locator("#changes tbody tr").count()) === 100, "a long history is cut, and says so");
  await page.evaluate(() => scrollTo(0, 0));
  await screens(page, "trust-long");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("the whole history", async () => (await page.locator("#changes tbody tr").count()) === 101);
  check((await page.locator(".chart").first().locator("circle").count()) === 101, "and more of it is shown on request");
}

async function registering({ desk, page }) {
  await page.goto(`${desk.url}/agents`);
  await page.getByText("Register an agent").click();
  await page.getByLabel("Its name").fill("code");
  await page.getByLabel("What it is for").fill(HOSTILE);
  await page.getByRole("button", { name: "Register" }).click();
  const token = await until("the token is shown", async () => (await page.locator("#token-text").textContent()).startsWith("dma_") && page.locator("#token-text").textContent());
  check((await page.locator("#token-command").textContent()) === `DESKMATE_TOKEN=${token} deskmate connect claude-code`, "registering shows the token and how to connect");
  check(!(await page.locator("#toasts").textContent()).includes("dma_"), "and not in a toast");
  await screens(page, "token");
  await page.keyboard.press("Escape");
  await desk.propose(token, "deal/token", { note: "with a token" });
  await until("the list has it", async () => (await rows(page)).slice(0, 3).join() === "busy,code,scribe");
  check(await page.locator("#token").isVisible(), "neither a key nor news closes it");
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByText(/Copied|it is selected/).first().waitFor();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await until("the dialog is empty", async () => !(await page.content()).includes(token));
  check(true, "once closed, nothing of it is left on the page");
  await page.reload();
  check(!(await page.content()).includes(token), "nor comes again");
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, "hostile text in a note runs nothing and makes no element");
  check((await page.locator("#agent-code").textContent()).includes("\\u{202e}"), "marks that turn it around are made visible");
  check(await page.getByText("the desk is closed").isVisible(), "the desk is closed from then on");
  await screens(page, "agents");
  return token;
}

async function changing({ desk, page, token }) {
  await page.goto(`${desk.url}/agents/code`);
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, "nor on its own page");
  await page.getByText("Change the note").click();
  check((await page.getByLabel("What it is for").inputValue()) === HOSTILE, "a note is edited as it is");
  await page.getByLabel("What it is for").fill("Writes code");
  await page.getByRole("button", { name: "Keep" }).click();
  await page.locator(".words", { hasText: "Writes code" }).waitFor();
  check(true, "and the new one shows");
  await page.locator("#rotate summary").click();
  await page.getByRole("button", { name: "Make a new token" }).click();
  const next = await until("the new token is shown", async () => (await page.locator("#token-text").textContent()).startsWith("dma_") && page.locator("#token-text").textContent());
  await page.getByRole("button", { name: "I have kept it" }).click();
  const refused = await desk.call(token, "desk_whoami", {}).catch((error) => error.message);
  check(String(refused).includes("unauthenticated"), "the old token stops working", refused);
  check((await desk.call(next, "desk_whoami", {})).id === "code", "and the new one works");
  return next;
}

async function pausing({ desk, page, token }) {
  await page.goto(`${desk.url}/agents/code`);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "No", exact: true }).click();
  check((await signedCall(page, "desk_pause_list", {})).items.length === 0, "pausing asks once, and no is no");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Let it go on" }).waitFor();
  const act = { domain: "crm.deals", action: "update", target: "deal/p", proposed_change: "{}", confidence: 0.9, reasoning: "no" };
  check((await desk.call(token, "cowork_propose", act)).mode === "deny", "a paused agent is denied everything");
  await page.goto(`${desk.url}/agents`);
  check((await page.locator("#agent-code").textContent()).includes("paused"), "the list says so");
  await page.goto(`${desk.url}/agents/code`);
  await page.getByRole("button", { name: "Let it go on" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  check((await desk.call(token, "cowork_propose", act)).mode !== "deny", "and goes on when it is let");
}

// What is earned with a token stands beside what was earned without one.
async function apart(all) {
  const { desk, page } = all;
  const { token } = await signedCall(page, "desk_agent_add", { agent: "scribe" });
  await decided(all, token, [true, true]);
  await page.goto(`${desk.url}/trust?agent=scribe&domain=crm.deals`);
  await until("both scores", async () => (await page.locator(".chart").first().locator("circle").count()) === 8);
  const headings = await page.locator("h2").allTextContents();
  check(["With its token", "By its name alone, unverified"].every((heading) => headings.includes(heading)), "a score that was earned by a name alone stays apart", headings);
  check((await page.locator(".chart .broken").count()) > 0 && (await page.getByText("the broken one").isVisible()), "and is another line of the chart");
  await screens(page, "trust-apart");
}

// Somebody who only looks on, in a browser of their own.
async function lookingOn(all) {
  const { desk } = all;
  const { context, page } = await invited(all, "Vera", "--role", "viewer");
  await page.goto(`${desk.url}/agents`);
  check((await page.locator("#register").count()) === 0, "who only looks on is not offered to register agents");
  await page.goto(`${desk.url}/agents/code`);
  await page.getByText("Your role looks on").waitFor();
  check((await page.locator("#revoke, #rotate").count()) === 0, "nor to revoke or pause one");
  await page.goto(`${desk.url}/policies/edit`);
  await page.getByText("Only an owner puts it in force").waitFor();
  check((await page.getByRole("button", { name: "Put in force" }).count()) === 0, "nor to put policies in force");
  await page.getByLabel("The policies, mappings and settings").fill("authority: { volume_cap: 20 }");
  await page.getByText("only tightens").waitFor();
  check(true, "but may try what a draft would do");
  await context.close();
}

async function revoking({ desk, page, token }) {
  await page.goto(`${desk.url}/agents/code`);
  await page.locator("#revoke summary").click();
  await page.getByLabel("Why, for the record").fill("no longer needed");
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator(".head", { hasText: "revoked" }).waitFor();
  const refused = await desk.call(token, "desk_whoami", {}).catch((error) => error.message);
  check(String(refused).includes("unauthenticated"), "revoking asks, and the token stops working", refused);
  check(await page.getByText("Register again").isVisible(), "it can be registered again");
}

export default async function (all) {
  await empty(all);
  await openMode(all);
  await paged(all);
  await farOn(all);
  await oneAgent(all);
  await trust(all);
  await longHistory(all);
  let token = await registering(all);
  token = await changing({ ...all, token });
  await pausing({ ...all, token });
  await apart(all);
  await lookingOn(all);
  await revoking({ ...all, token });
  await made(all);
}
