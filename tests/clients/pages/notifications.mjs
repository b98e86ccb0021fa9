// How somebody is told: a way of one's own is made, tried, changed and taken away on the page; what did not arrive is sent again; and a
// link that was sent decides, once, by a button.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { PASSPHRASE, check, forgive, screens, sleep, until } from "../desk.mjs";

// A server of ntfy: it keeps what it gets, and answers with the status that it is told.
async function ntfy() {
  const service = { got: [], status: 200 };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => (body += bytes));
    request.on("end", () => {
      if (service.status === 200) service.got.push(JSON.parse(body));
      response.writeHead(service.status, { "content-type": "application/json" }).end(JSON.stringify({ id: "m1" }));
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  service.url = `http://127.0.0.1:${server.address().port}`;
  service.close = () => server.close();
  return service;
}

async function setUp({ desk, page }, service) {
  const { port } = new URL(desk.url);
  await desk.halt();
  const outlet = { name: "phone", kind: "ntfy", url: service.url, token: "secret:ntfy" };
  writeFileSync(join(desk.home, "deskmate.yaml"), JSON.stringify({ notifications: { base_url: `http://deskmate.localhost:${port}`, outlets: [outlet] } }));
  await desk.start(`127.0.0.1:${port}`);
  await page.goto(`${desk.url}/people/notifications`);
  await page.getByText("You are told in no way of your own yet.").waitFor();
}

async function making({ page, context, complaints }) {
  const form = page.locator("#new-subscription form");
  const far = await context.newCDPSession(page);
  await far.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Tokyo" });
  await page.reload();
  check((await form.getByLabel("In the time zone").inputValue()) === "Asia/Tokyo", "a new way is in the reader's time zone");
  await far.detach();
  await page.reload();
  check((await form.textContent()).includes("tool_call, deploy;"), "and names every kind of request");
  await page.keyboard.press("n");
  await form.getByLabel("Where to").fill("not a topic");
  await form.getByRole("button", { name: "Be told so" }).click();
  await page.getByText("must be", { exact: false }).first().waitFor();
  check((await form.getByLabel("Where to").inputValue()) === "not a topic", "a wrong address is said, and nothing is lost of the form");
  await forgive(complaints, 400);
  await form.getByLabel("Where to").fill("ada-desk");
  await form.getByLabel("How much a message shows").selectOption("redacted");
  await form.getByLabel("Seconds between two messages").fill("0");
  await form.getByLabel("Links that decide without signing in").check();
  await form.getByRole("button", { name: "Be told so" }).click();
  const card = page.locator("#subscription-phone");
  await card.getByText("links that decide", { exact: true }).waitFor();
  await card.getByText("ada-desk · at once").waitFor();
  await screens(page, "notifications");
  return card;
}

async function trying({ page }, card) {
  await card.getByRole("button", { name: "Send me a test" }).click();
  await page.getByText("It did not arrive:", { exact: false }).waitFor();
  check(true, "a test that fails says why, because the secret is not there yet");
}

async function arrives({ desk, page }, card, service) {
  const done = spawnSync(process.env.DESKMATE, ["secret", "set", "ntfy", "--home", desk.home, "--passphrase-stdin"], { input: `${PASSPHRASE}\ntk_secret\n`, encoding: "utf8" });
  check(done.status === 0, "the secret is put in", done.stderr);
  await sleep(5_000);
  await card.getByRole("button", { name: "Send me a test" }).click();
  await page.getByText("The test arrived").waitFor();
  await card.getByText("last arrived").waitFor();
  check(service.got[0].title === "Deskmate: a test", "a test that arrives is told as such");
}

async function changing({ page }, card) {
  await card.locator("summary", { hasText: "Change" }).click();
  await card.getByLabel("How risky a request has to be").selectOption("medium");
  await card.getByLabel("Quiet from").fill("03:00");
  await card.getByLabel("Quiet until").fill("03:05");
  await card.getByRole("button", { name: "Change", exact: true }).click();
  await card.getByText("quiet 03:00 to 03:05, from medium risk on", { exact: false }).waitFor();
  check((await card.getByLabel("Links that decide without signing in").isChecked()) === true, "a change keeps what was not touched");
  await card.locator("summary", { hasText: "Change" }).click();
  await card.getByLabel("How risky a request has to be").selectOption("");
  await card.getByLabel("Quiet from").fill("");
  await card.getByLabel("Quiet until").fill("");
  await card.getByRole("button", { name: "Change", exact: true }).click();
  await until("it is as before", async () => (await card.getByText("quiet 03:00").count()) === 0);
}

async function deciding({ desk, page, browser }, service) {
  const before = service.got.length;
  const proposed = await desk.propose("code", "deal/<img src=x onerror=owned()>", { amount: 7 });
  await until("the message comes", () => service.got.length > before);
  const message = service.got.at(-1);
  const link = message.actions.find(({ label }) => label === "Decide").url;
  check(message.message.includes("code asks for a proposal in crm.deals") && link.startsWith(`${desk.url}/decide?link=dml_`), "a message says who asks for what, and carries a link", message);
  // Another browser, in which nobody is signed in.
  const context = await browser.newContext({ viewport: { width: 380, height: 760 } });
  const phone = await context.newPage();
  await phone.goto(link);
  await phone.getByText("Nothing is decided yet", { exact: false }).waitFor();
  check((await phone.locator("main img").count()) === 0 && (await phone.getByText("amount").count()) > 0, "the page shows exactly what would be done, as text");
  await screens(phone, "decide");
  await phone.getByRole("button", { name: "Approve" }).click();
  await phone.getByText("Approved. It may be done, once", { exact: false }).waitFor();
  check((await phone.getByRole("button").count()) === 0, "the button decides, and is gone");
  await phone.goto(link);
  await phone.getByText("This link decides nothing").waitFor();
  await phone.getByText("was used already", { exact: false }).waitFor();
  await phone.getByRole("link", { name: "Sign in and look at the request" }).click();
  await phone.waitForURL(/\/sign-in/);
  check(true, "a link that was used says so, and leads to the sign-in");
  await context.close();
  await page.goto(`${desk.url}/requests/${proposed}`);
  await page.getByText("approved").first().waitFor();
  check(true, "the request is approved");
}

async function dead({ desk, page }, service) {
  service.status = 401;
  await page.goto(`${desk.url}/people/notifications`);
  await desk.propose("code", "deal/2", { amount: 8 });
  const section = page.locator("#dead");
  await section.getByText("the service answered 401").waitFor();
  check((await section.locator(".count").textContent()) === "1", "what did not arrive is counted, with why");
  await screens(page, "notifications-dead");
  await page.goto(`${desk.url}/tasks`);
  check((await page.locator("#not-arrived .count").textContent()) === "1", "every page leads to what did not arrive");
  await page.getByRole("link", { name: "Not arrived" }).click();
  await page.waitForURL(/notifications#dead/);
  service.status = 200;
  const before = service.got.length;
  await section.getByRole("button", { name: "Send again" }).click();
  await until("it arrives", () => service.got.length > before);
  await until("nothing is dead", async () => (await page.locator("#dead").count()) === 0);
  check((await page.locator("#not-arrived").count()) === 0, "and sent round again, it arrives, and nothing leads there any more");
  service.status = 404;
  await desk.propose("code", "deal/3", { amount: 9 });
  await section.getByRole("button", { name: "Dismiss" }).click();
  await until("it is gone", async () => (await page.locator("#dead").count()) === 0);
  check(true, "or it is dismissed");
  service.status = 200;
}

async function removing({ page }, card) {
  await card.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("You are told in no way of your own yet.").waitFor();
  check(true, "a way is taken away");
}

export default async function (all) {
  const service = await ntfy();
  try {
    await setUp(all, service);
    const card = await making(all);
    await trying(all, card);
    await arrives(all, card, service);
    await changing(all, card);
    await deciding(all, service);
    await dead(all, service);
    await removing(all, card);
  } finally {
    service.close();
  }
}
