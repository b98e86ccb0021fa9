// What the checks in a browser share: a throw-away desk, its agents, and ways to look at pages.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { DESKMATE, CLIENTS } = process.env;
const require = createRequire(`${CLIENTS}/`);
export const { chromium } = require("playwright-core");
export const PASSPHRASE = "correct horse battery";
export const SCREENS = join(CLIENTS, "screens");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
export const LAUNCH = { executablePath: "/usr/bin/chromium", args: FLAGS, headless: true, chromiumSandbox: false };

// The engines that desks are tried on: `ENGINE` names the only one, and without a server there is no PostgreSQL.
const SERVER = process.env.DESKMATE_TEST_PG;
export function engines() {
  const known = SERVER && SERVER !== "skip" ? ["sqlite", "postgres"] : ["sqlite"];
  if (known.length === 1) console.log("  SKIPPED on PostgreSQL: DESKMATE_TEST_PG names no server");
  return known.filter((engine) => (process.env.ENGINE ?? engine) === engine);
}

// What `deskmate up` is given for an engine; on PostgreSQL a database of this name.
export function settingsOf(engine, name) {
  if (engine !== "postgres") return [];
  const done = spawnSync("psql", [SERVER, "-qc", `create database ${name}`], { encoding: "utf8" });
  if (done.status !== 0) throw new Error(done.stderr);
  return ["--database-url", SERVER.replace(/\/[^/]*$/, `/${name}`)];
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function check(condition, what, found) {
  if (!condition) throw new Error(found === undefined ? what : `${what}; found ${JSON.stringify(found)}`);
  console.log(`  ok  ${what}`);
}

// Waits until something is so, and says what never was. Where the time itself is promised, the check measures it.
export async function until(what, holds, ms = 30_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await sleep(25);
  }
}

// A desk of its own in a folder of its own. `settings` are further arguments of `deskmate up`.
export async function startDesk({ settings = [], more = {} } = {}) {
  const root = mkdtempSync(join(tmpdir(), "deskmate-browser-"));
  const home = join(root, "desk");
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: root, ...more };
  const desk = { root, home, link: null, url: null, process: null, wasHalted: false };
  const begin = async (listen) => {
    desk.process = spawn(DESKMATE, ["up", "--home", home, "--listen", listen, ...settings], { env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    let isOver = false;
    desk.process.stdout.on("data", (bytes) => (said += bytes));
    desk.process.stderr.on("data", (bytes) => (said += bytes));
    desk.process.once("close", () => (isOver = true));
    for (const end = Date.now() + 60_000; !isOver && !said.includes("Ctrl-C") && Date.now() < end; ) await sleep(50);
    return said;
  };
  desk.start = async (listen = "127.0.0.1:0") => {
    // A port that the desk had before may be another check's for a while.
    const said = await until("the port is free", async () => {
      const said = await begin(listen);
      return !said.includes("already in use") && said;
    });
    if (!said.includes("Ctrl-C")) throw new Error(`the desk did not start: ${said}`);
    // Pages live under the desk's own name, as in a browser that knows it; programs use the address.
    desk.address = JSON.parse(readFileSync(join(home, "desk.lock"), "utf8")).url;
    desk.url = desk.address.replace("127.0.0.1", "deskmate.localhost");
    desk.link ??= said.match(/http\S+\/claim\?code=\S+/)?.[0];
  };
  desk.halt = async () => {
    desk.wasHalted = true;
    desk.process.kill("SIGTERM");
    await new Promise((resolve) => (desk.process.exitCode === null ? desk.process.once("exit", resolve) : resolve()));
  };
  desk.stop = async () => {
    await desk.halt();
    rmSync(root, { recursive: true, force: true });
  };
  desk.cli = (...args) => {
    // Who claimed the desk sits at its terminal, also once there are others.
    const who = desk.owner ? { DESKMATE_PERSON: desk.owner } : {};
    const done = spawnSync(DESKMATE, [...args, "--home", home, "--json", "--passphrase-stdin"], { env: { ...env, ...who }, input: `${PASSPHRASE}\n`, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`${args.join(" ")}: ${done.stderr}`);
    return JSON.parse(done.stdout);
  };
  // A call of an agent, by its name or with its token.
  desk.call = async (agent, operation, input) => {
    const who = agent.startsWith("dma_") ? { authorization: `Bearer ${agent}` } : { "x-deskmate-agent": agent };
    const response = await fetch(`${desk.address}/api/${operation}`, { method: "POST", headers: { "content-type": "application/json", ...who }, body: JSON.stringify(input) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${operation}: ${JSON.stringify(answer)}`);
    return answer;
  };
  desk.propose = async (agent, target, change, more = {}) => {
    const input = { domain: "crm.deals", action: "update", target, proposed_change: JSON.stringify(change), confidence: 0.8, reasoning: "They asked for it.", ...more };
    return (await desk.call(agent, "cowork_propose", input)).proposal_id;
  };
  // Waits until the record has not grown for a moment: on PostgreSQL what was done last is sealed later, and an open page reads itself again.
  desk.settle = async () => {
    let known = -1;
    let since = Date.now();
    await until("nothing happens on the desk", async () => {
      const events = await desk.events();
      if (events !== known) [known, since] = [events, Date.now()];
      return Date.now() - since > 400;
    });
  };
  desk.events = async () => (await (await fetch(`${desk.address}/readyz`)).json()).events;
  await desk.start();
  return desk;
}

// Notes everything that the browser complains about.
export function listen(page, complaints) {
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
}

// A refusal that a check provoked is in the browser's log as well, a moment later.
export async function forgive(complaints, status) {
  const at = () => complaints.findIndex((complaint) => complaint.includes(`a status of ${status}`));
  await until("the refusal is logged", () => at() >= 0);
  complaints.splice(at(), 1);
}

// What keeps somebody from reading or using a page as it is now: too little contrast, something without a name, and the like.
async function barriers(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(`${readFileSync(require.resolve("axe-core/axe.min.js"), "utf8")};undefined`);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], preload: false });
    const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    return grave.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ target, any }) => `${id} at ${target.join(" ")}: ${any[0]?.message ?? ""}`));
  });
}

// Marks that hide or turn text, wherever a page shows them as they are. Where one writes, what is there stays as it was.
export function hidden(page) {
  return page.evaluate(() => {
    const marks = /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u;
    const texts = [...document.querySelectorAll("body *:not(textarea, script)")].flatMap((element) => [
      ...[...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
      ...["aria-label", "title", "placeholder"].map((name) => element.getAttribute(name) ?? ""),
    ]);
    return texts.filter((text) => marks.test(text)).map((text) => text.slice(0, 80));
  });
}

// What somebody can write, with everything in it that a page must not take for its own; and as much of it as long fields take.
export const HOSTILE = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1">"'\u202eevil\u200b\u2066`;
export const HUGE = `${HOSTILE} ${"long ".repeat(100)}${"x".repeat(100_000)}`;

// The page as it looks wide and narrow, in light and in dark: nothing may run out of a narrow window, nothing keep anybody out,
// and no mark that hides or turns text may stand there as it is.
export async function screens(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 380]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 760 });
      await page.screenshot({ path: join(SCREENS, `${name}-${colorScheme}-${width}.png`) });
      const found = await barriers(page);
      if (found.length) check(false, `${name}: everybody can read and use it, ${colorScheme}, ${width} px wide`, found);
    }
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  check(!wide, `${name}: nothing runs out of a narrow window, and everybody can read and use it`);
  const marks = await hidden(page);
  if (marks.length) check(false, `${name}: no text hides or turns what is shown`, marks);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 760 });
}

// The bytes of everything that a page brings when it is opened for the first time. What happens on the desk meanwhile makes a page
// read itself again, which is no part of that: then it is opened anew.
export async function firstLoad(page, desk) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  let bytes = 0;
  devtools.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
  await until("nothing happens while the page is opened", async () => {
    await desk.settle();
    const events = await desk.events();
    await page.goto("about:blank");
    await devtools.send("Network.clearBrowserCache");
    bytes = 0;
    await page.goto(desk.url, { waitUntil: "load" });
    await sleep(500);
    return events === (await desk.events());
  });
  await devtools.detach();
  return bytes;
}

// A key approves only what has been on the screen for a moment.
export async function approve(page) {
  await sleep(500);
  await page.keyboard.press("a");
}

export async function fill(page, fields) {
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
  await page.locator("main button:not([type=button])").click();
}

// Calls an operation as the page's person, signed by the browser's key. Presence is shown where the desk asks for it again.
export function signedCall(page, operation, input) {
  return page.evaluate(
    async ([operation, input, passphrase]) => {
      const { call } = await import(new URL("sign.js", document.querySelector("script[type=module]").src));
      const answer = await call(operation, input);
      if (!answer.error?.needs_presence) return answer;
      await call("desk_show_presence", { passphrase });
      return call(operation, input);
    },
    [operation, input, PASSPHRASE],
  );
}

// Gives the passphrase whenever a page asks for it, which depends on how long ago it was given last.
export async function answersPresence(page) {
  const answer = (passphrase) =>
    new MutationObserver(() => {
      const form = document.querySelector("#presence[open] form");
      if (!form || form.elements.passphrase.value) return;
      form.elements.passphrase.value = passphrase;
      form.requestSubmit();
    }).observe(document, { subtree: true, attributes: true, attributeFilter: ["open"] });
  await page.addInitScript(answer, PASSPHRASE);
  await page.evaluate(answer, PASSPHRASE);
}

export async function claim(page, desk, name = "Ada") {
  await page.goto(desk.link);
  await page.waitForURL((url) => url.hostname === "deskmate.localhost");
  await fill(page, { "Your name": name, Passphrase: PASSPHRASE, "The same again": PASSPHRASE });
  await page.waitForURL(`${desk.url}/`);
  desk.owner = name;
}

// Another person of the desk, in a browser of their own.
export async function invited({ desk, browser, complaints }, name, ...role) {
  const { link } = desk.cli("person", "invite", name, ...role);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  listen(page, complaints);
  await page.goto(link.replace(desk.address, desk.url));
  await fill(page, { Passphrase: PASSPHRASE, "The same again": PASSPHRASE });
  await page.waitForURL(`${desk.url}/`);
  await answersPresence(page);
  return { context, page };
}

// The network log of a refused call is no fault of a page.
export const provoked = (complaint) => /the server responded with a status of (401|403|404|409|429)/.test(complaint) || /blocked by CORS|ERR_FAILED|ERR_CONNECTION_REFUSED|ERR_INTERNET_DISCONNECTED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET/.test(complaint);

// A desk that is stopped closes a connection that it has just accepted, before it read what is asked over it.
export const ofHalting = (desk, complaint) => desk.wasHalted && complaint.includes("ERR_EMPTY_RESPONSE");

// What the desk says when somebody has not shown for a while that they are there.
export const LATE = { code: "forbidden", message: "this needs you to show that you are there", needs_presence: true };

// The titles that a list shows, and how a request stands.
export const rows = (page) => page.locator("[data-row] .title").allTextContents();
export const state = async (desk, page, id) => (await signedCall(page, "desk_request_get", { request: id })).state;
