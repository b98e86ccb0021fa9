// People: inviting, roles, keeping out; sessions, tokens, standing approvals and notifications of one's own.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { HOSTILE, PASSPHRASE, check, fill, forgive, hidden, listen, screens, sleep, until } from "../desk.mjs";

async function newBrowser({ browser, complaints }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  listen(page, complaints);
  return { context, page };
}

async function inviting(all) {
  const { desk, page, context } = all;
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(desk.url).origin });
  await page.goto(`${desk.url}/people`);
  await page.getByText("You are alone here.").waitFor();
  await page.keyboard.press("n");
  await page.getByLabel("Their name").fill("Grace");
  await page.getByLabel("What they may do").first().selectOption("member");
  await page.getByRole("button", { name: "Make the link" }).click();
  await page.locator("dialog#once[open]").waitFor();
  const link = await page.locator("#once-value").inputValue();
  check(link.startsWith(`${desk.url}/join?code=`), "an invitation's link is shown once", link.slice(0, 40));
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied").waitFor();
  check((await page.evaluate(() => navigator.clipboard.readText())) === link, "and copied");
  await screens(page, "people-link");
  await page.locator("dialog#once").getByRole("button", { name: "Close" }).click();
  await until("it is gone", async () => (await page.locator("#once-value").inputValue()) === "");
  check(true, "after that it is gone from the page");
  await page.getByText("Invitations that are open").waitFor();
  const other = await newBrowser(all);
  await other.page.goto(link);
  await fill(other.page, { Passphrase: PASSPHRASE, "The same again": PASSPHRASE });
  await other.page.waitForURL(`${desk.url}/`);
  await page.locator("#people").getByText("Grace").waitFor();
  await until("the invitation is used", async () => (await page.getByText("Invitations that are open").count()) === 0);
  check(true, "who joins is there without a reload, and the invitation is used up");
  const again = await newBrowser(all);
  const told = async (address) => {
    await again.page.goto(address);
    await again.page.getByRole("heading", { name: "This link does not work" }).waitFor();
    check((await again.page.locator("form").count()) === 0, "no form is offered for nothing");
    return again.page.locator("main").textContent();
  };
  const used = await told(link);
  check(used.includes("used up") && used.includes("an owner of the desk gives a new invitation"), "a link that was used says at once how to get a new one", used);
  await screens(again.page, "people-link-used");
  const bad = [await told(`${desk.url}/join?code=bad`), await told(`${desk.url}/claim?code=bad`)];
  check(bad[0].includes("new invitation") && bad[1].includes("deskmate claim"), "and so do bad links to join and to claim", bad);
  await again.context.close();
  return other;
}

async function roles({ desk, page }, other) {
  await other.page.goto(`${desk.url}/people`);
  check((await other.page.getByText("Invite somebody").count()) === 0, "who is no owner invites nobody");
  const card = page.locator("#people > li", { hasText: "Grace" });
  await page.bringToFront();
  await card.locator("summary", { hasText: "Change" }).click();
  await card.getByLabel("What they may do").selectOption("approver");
  await card.getByLabel("Domains that an approver decides").fill("crm.deals, billing");
  await card.getByRole("button", { name: "Change" }).click();
  await card.getByText("Decides in crm.deals, billing").waitFor();
  await other.page.bringToFront();
  await other.page.getByText("Decides in crm.deals, billing").waitFor();
  check(true, "a role is changed, and the other one sees it at once");
  await screens(page, "people");
  await page.bringToFront();
  const own = page.locator("#people > li", { hasText: "(you)" });
  await own.locator("summary", { hasText: "Change" }).click();
  await own.getByLabel("What they may do").selectOption("viewer");
  await own.getByRole("button", { name: "Change" }).click();
  await page.getByText("This is the only owner").waitFor();
  check(true, "the only owner cannot be taken away");
}

async function hostile({ desk, page }) {
  await page.goto(`${desk.url}/people`);
  await page.keyboard.press("n");
  await page.getByLabel("Their name").fill('<img src=x onerror="globalThis.owned=1">\u202eevil');
  await page.getByRole("button", { name: "Make the link" }).click();
  await page.locator("dialog#once").getByRole("button", { name: "Close" }).click();
  const invitation = page.locator("section.part li", { hasText: "<img src=x" });
  await invitation.waitFor();
  check((await page.locator("main img").count()) === 0 && (await invitation.textContent()).includes("\\u{202e}"), "a hostile name is text");
  await screens(page, "people-hostile");
  await invitation.getByRole("button", { name: "Take it back" }).click();
  await invitation.waitFor({ state: "detached" });
  check(!(await page.evaluate(() => globalThis.owned)), "and its invitation is taken back");
}

async function sessions(all) {
  const { desk, page } = all;
  const phone = await newBrowser(all);
  await phone.page.goto(`${desk.url}/sign-in?next=/messages`);
  await phone.page.getByLabel("Your name").fill("Ada");
  await phone.page.getByLabel("Passphrase or PIN").fill(PASSPHRASE);
  await phone.page.getByRole("button", { name: "Sign in", exact: true }).click();
  await phone.page.waitForURL(`${desk.url}/messages`);
  await page.goto(`${desk.url}/people/you`);
  await page.getByText("This browser", { exact: true }).waitFor();
  await page.getByRole("button", { name: "End it" }).first().waitFor();
  const before = await page.locator("#sessions > li").count();
  await screens(page, "people-you");
  // The newest one is the other browser's.
  await page.getByRole("button", { name: "End it" }).first().click();
  await until("one less", async () => (await page.locator("#sessions > li").count()) === before - 1);
  await phone.page.waitForURL(/\/sign-in/, { timeout: 60_000 });
  check(true, "a session that is ended in one browser is over in the other, without anybody touching it");
  await phone.context.close();
}

async function tokens({ desk, page, complaints }) {
  await page.goto(`${desk.url}/people/you`);
  await page.keyboard.press("n");
  await page.getByLabel("What it is for").fill(`<b>a script</b> ${HOSTILE}`);
  await page.getByLabel("Scopes, with commas between").fill("nonsense!");
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.getByText("is not a scope", { exact: false }).waitFor();
  await forgive(complaints, 400);
  await page.getByLabel("Scopes, with commas between").fill("bridge:read, desk_record_list:read");
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.locator("dialog#once[open]").waitFor();
  const token = await page.locator("#once-value").inputValue();
  const read = (token) => fetch(`${desk.address}/api/bridge_list_groups`, { headers: { authorization: `Bearer ${token}` } });
  check((await read(token)).status === 200, "a token is made, shown once, and works");
  await page.locator("dialog#once").getByRole("button", { name: "Close" }).click();
  await page.locator("#tokens").getByText("<b>a script</b>").waitFor();
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, "a hostile name of a token is text");
  await screens(page, "people-tokens");
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("it is gone", async () => (await page.locator("#tokens > li").count()) === 0);
  check((await read(token)).status === 401, "and is revoked");
}

// A code is typed into another program, which then stands among the tokens, or among the sessions.
async function pairing({ desk, page }) {
  await page.goto(`${desk.url}/people/you`);
  const code = async (kind, name) => {
    await page.getByText("Make a code").click();
    await page.getByLabel("What is paired").selectOption(kind);
    await page.getByLabel("How it is listed").fill(name);
    await page.getByRole("button", { name: "Make the code" }).click();
    await page.locator("dialog#once.large[open]").waitFor();
    const until = new Date(await page.locator("#once-until").getAttribute("datetime")) - Date.now();
    check(until > 9 * 60_000 && until <= 10 * 60_000, "a code is shown large, with its end", until);
    const shown = await page.locator("#once-value").inputValue();
    if (kind === "program") await screens(page, "people-pairing");
    await page.locator("dialog#once").getByRole("button", { name: "Close" }).click();
    return shown;
  };
  const pair = async (input) => {
    const response = await fetch(`${desk.address}/api/desk_pair`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(input) });
    return { status: response.status, answer: await response.json() };
  };
  const program = await code("program", `<i>a program</i> ${HOSTILE.slice(-20)}`);
  check((await pair({ code: program })).answer.token?.startsWith("dmp_"), "a program is paired", program);
  await page.locator("#tokens").getByText("<i>a program</i>").waitFor();
  check((await hidden(page)).length === 0, "and so is that of a program", await hidden(page));
  check((await pair({ code: program })).status === 401, "and listed at once; its code was for one use");
  await page.locator("#tokens").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("it is gone", async () => (await page.locator("#tokens > li").count()) === 0);
  const { publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  const key = Buffer.from(await crypto.subtle.exportKey("raw", publicKey)).toString("base64");
  const extension = await pair({ code: await code("extension", "an extension"), public_key: key });
  check(extension.answer.session?.startsWith("dms_"), "an extension is paired");
  const card = page.locator("#sessions > li", { hasText: "an extension" });
  await card.getByRole("button", { name: "End it" }).click();
  await card.waitFor({ state: "detached" });
  check(true, "and its session is listed by its name, and ended");
}

async function approvals({ desk, page }) {
  await page.goto(`${desk.url}/people/approvals`);
  await page.getByText("There is none").waitFor();
  const id = await desk.propose("code", "deal/1", { note: "first" });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.getByText("Approve more like it").click();
  // Nothing is approved that came up only just now.
  await sleep(500);
  await page.getByRole("button", { name: "Approve, also for acts like it" }).click();
  await page.getByText("Approved, and acts like it for a while").waitFor();
  await page.goto(`${desk.url}/people/approvals`);
  await page.getByText("given by Ada").waitFor();
  await screens(page, "people-approvals");
  await page.getByRole("button", { name: "End it" }).click();
  await page.getByText("ended", { exact: true }).waitFor();
  check(true, "a standing approval is listed with who gave it, and ended");
}

// The desk starts again with two channels: one that takes everything, and one whose receiver says that it is gone.
async function notifications({ desk, page }) {
  await page.goto(`${desk.url}/people/notifications`);
  await page.getByText("No channel is set up").waitFor();
  check(true, "without a channel the page says how to set one up");
  const gone = createServer((_, response) => response.writeHead(410).end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => gone.once("listening", resolve));
  const channels = ["notifications:", '  desktop: { command: ["/bin/true"] }', "  webhooks:", `    - { name: team, url: "http://127.0.0.1:${gone.address().port}/x", secret: "whsec_${"A".repeat(43)}=" }`];
  const { port } = new URL(desk.url);
  await desk.halt();
  writeFileSync(join(desk.home, "deskmate.yaml"), `${channels.join("\n")}\n`);
  await desk.start(`127.0.0.1:${port}`);
  await page.goto(`${desk.url}/people/notifications`);
  await page.locator("#channel-desktop").getByRole("button", { name: "Send a test" }).click();
  await page.locator("#notifications").getByText("delivered").first().waitFor();
  await page.locator("#channel-desktop").getByText("last arrived").waitFor();
  check(true, "a test is sent through a channel, and what became of it shows");
  const team = page.locator("#channel-team");
  await team.getByRole("button", { name: "Send a test" }).click();
  await team.getByRole("button", { name: "Turn it on again" }).waitFor();
  await screens(page, "people-notifications");
  await team.getByRole("button", { name: "Turn it on again" }).click();
  await until("it is on", async () => (await team.getByRole("button", { name: "Turn it on again" }).count()) === 0);
  check(true, "a channel that went off by itself is turned on again");
  gone.close();
}

async function out({ desk, page }, other) {
  await other.page.goto(`${desk.url}/messages`);
  await page.goto(`${desk.url}/people`);
  const card = page.locator("#people > li", { hasText: "Grace" });
  await card.getByRole("button", { name: "Keep out" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await card.getByText("disabled").waitFor();
  await other.page.waitForURL(/\/sign-in/, { timeout: 60_000 });
  check(true, "who is kept out is out at once");
  await card.getByRole("button", { name: "Let in again" }).click();
  await until("she is in again", async () => (await card.getByText("disabled").count()) === 0);
  await sleep(100);
  check(true, "and let in again");
  await other.context.close();
}

export default async function (all) {
  const other = await inviting(all);
  await roles(all, other);
  for (const part of [hostile, sessions, tokens, pairing, approvals, notifications]) await part(all);
  await out(all, other);
}
