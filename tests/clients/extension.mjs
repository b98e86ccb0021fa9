// The extension in a real browser: pairing, the number on its button, deciding in the popup, plans for folders, unpairing.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { LAUNCH, PASSPHRASE, SCREENS, check, chromium, claim, listen, ofHalting, provoked, signedCall, startDesk, until } from "./desk.mjs";

const EXTENSION = fileURLToPath(new URL("../../extension", import.meta.url));
const HOSTILE = "<img src=x onerror=\"globalThis.owned=1\"><b>bold</b>\u202eevil";
const MANY = 120;
const ARGS = [...LAUNCH.args, `--disable-extensions-except=${EXTENSION}`, `--load-extension=${EXTENSION}`, "--disable-features=DisableLoadExtensionCommandLineSwitch"];

// The extension's background, which the browser starts by itself, and pages of it in tabs.
async function extensionOf(browser) {
  const worker = browser.serviceWorkers()[0] ?? (await browser.waitForEvent("serviceworker"));
  const base = new URL(".", worker.url()).href;
  const badge = () => worker.evaluate(() => chrome.action.getBadgeText({}));
  return { worker, base, badge };
}

// A page of the web.
async function startStranger() {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>stranger</title>"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: server.address().port, close: () => server.close() };
}

async function opened(browser, address, complaints) {
  const page = await browser.newPage();
  listen(page, complaints);
  await page.setViewportSize({ width: 400, height: 600 });
  await page.goto(address);
  return page;
}

async function pictures(page, name, width = 400) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 600 });
    await page.screenshot({ path: join(SCREENS, `extension-${name}-${colorScheme}.png`), fullPage: true });
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  check(!wide, `${name}: nothing runs out of the window`);
  await page.emulateMedia({ colorScheme: "light" });
}

const isText = async (page) => !(await page.evaluate(() => globalThis.owned)) && (await page.locator("main img, main b, dialog img").count()) === 0;

// The passphrase, where the popup asks for it; whether it does depends on how long ago it was given last.
async function given(page, shown) {
  const asked = page.getByRole("dialog");
  await asked.or(shown).first().waitFor();
  if (await asked.isVisible()) {
    await page.getByLabel("Passphrase or PIN").fill(PASSPHRASE);
    await page.getByRole("button", { name: "Go on" }).click();
  }
  await shown.waitFor();
}

async function pairing({ desk, browser, page, extension, complaints }) {
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  await popup.getByText("Not paired yet").waitFor();
  await pictures(popup, "unpaired");
  await popup.close();
  check((await extension.badge()) === "", "the button shows nothing before pairing");
  const options = await opened(browser, `${extension.base}options.html`, complaints);
  const pairs = async (address, code) => {
    await options.getByLabel("The desk's address").fill(address);
    await options.getByLabel("Pairing code").fill(code);
    await options.getByRole("button", { name: "Pair" }).click();
  };
  await pairs("http://desk.example.org", "x");
  await options.getByText("This is no address of a desk").waitFor();
  check(true, "beyond this machine nothing goes without TLS");
  const gone = await startStranger();
  gone.close();
  await pairs(`http://127.0.0.1:${gone.port}`, "x");
  await options.getByText("does not answer").waitFor();
  await pairs(desk.address, "no-such-code");
  const refused = options.getByRole("alert").filter({ hasText: /code/i });
  await refused.waitFor();
  check(true, `a wrong code says so: ${await refused.textContent()}`);
  await pictures(options, "pairing", 760);
  const { code } = await signedCall(page, "desk_pairing_start", { kind: "extension", name: "This browser" });
  const program = await signedCall(page, "desk_pairing_start", { kind: "program", name: "A program" });
  await pairs(desk.address, program.code);
  await options.getByText("This code was for a program").waitFor();
  check(true, "and so does a code for something else");
  await pairs(desk.address, code);
  await options.getByRole("heading", { name: "Paired" }).waitFor();
  check(await options.getByText("You are Ada (owner)").isVisible(), "a code from the desk pairs the browser");
  const kept = await options.evaluate(async () => {
    const open = indexedDB.open("deskmate", 1);
    const store = await new Promise((resolve) => (open.onsuccess = () => resolve(open.result)));
    const get = store.transaction("keys").objectStore("keys").get("signing-key");
    const key = await new Promise((resolve) => (get.onsuccess = () => resolve(get.result)));
    return crypto.subtle.exportKey("pkcs8", key).then(() => "exported", (error) => error.name);
  });
  check(kept === "InvalidAccessError", "with a key that cannot be taken out of the browser", kept);
  await pairsAgain(options, desk, code);
  return options;
}

// A code is good once: whoever saw it cannot use it as well.
async function pairsAgain(options, desk, code) {
  const answer = await options.evaluate(
    async ([address, code]) => {
      const { publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
      const raw = btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.exportKey("raw", publicKey))));
      const response = await fetch(`${address}/api/desk_pair`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code, public_key: raw }) });
      return response.json();
    },
    [desk.address, code],
  );
  check(!answer.session, "a code pairs once", answer);
}

async function deciding({ desk, browser, extension, token, complaints }) {
  const proposals = [];
  for (const target of [HOSTILE, "deal/2", "deal/3"]) {
    proposals.push(await desk.propose(token, target, { note: HOSTILE, amount: 7 }, { reasoning: HOSTILE }));
  }
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  await popup.locator("[data-request]").nth(2).waitFor();
  await until("the button counts what waits", async () => (await extension.badge()) === "3");
  check(true, "the button counts what waits");
  await pictures(popup, "waiting");
  await popup.locator(`[data-request="${proposals[0]}"] summary`).first().click();
  await popup.getByRole("button", { name: "Approve" }).waitFor();
  check(await popup.getByText("/amount").isVisible(), "a request opens in place with what it changes");
  check(await isText(popup), "an agent's HTML stays text");
  check((await popup.locator("main").textContent()).includes("\\u{202e}"), "and what turns text is shown");
  await pictures(popup, "request");
  await popup.getByRole("button", { name: "Approve" }).click();
  await popup.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await popup.getByText("Nothing was done without your passphrase.").waitFor();
  await popup.getByRole("button", { name: "Approve" }).click();
  await popup.getByLabel("Passphrase or PIN").fill("wrong passphrase");
  await popup.getByRole("button", { name: "Go on" }).click();
  await popup.getByText("The passphrase is wrong.").waitFor();
  await pictures(popup, "passphrase");
  await popup.getByLabel("Passphrase or PIN").fill(PASSPHRASE);
  await popup.getByRole("button", { name: "Go on" }).click();
  await popup.getByText("Approved.").waitFor();
  const approved = await desk.call(token, "cowork_get_request", { request_id: proposals[0] });
  check(JSON.stringify(approved).includes("approved"), "approving asks for the passphrase, and the agent learns of it");
  await until("one less waits", async () => (await extension.badge()) === "2");
  await popup.locator(`[data-request="${proposals[1]}"] summary`).first().click();
  await popup.getByLabel("A word to whoever asks").fill("not like this");
  await popup.getByRole("button", { name: "Reject" }).click();
  await given(popup, popup.getByText("Rejected."));
  const rejected = await desk.call(token, "cowork_get_request", { request_id: proposals[1] });
  check(JSON.stringify(rejected).includes("not like this"), "rejecting tells the agent why");
  const digest = await changedMeanwhile(popup, proposals[2]);
  check(/changed|digest|conflict|meanwhile/i.test(digest), `what was not shown is not approved: ${digest}`, digest);
  await desk.propose(token, "deal/4", { amount: 1 });
  await popup.close();
  await until("the button counts again when the popup closes", async () => (await extension.badge()) === "2");
  check(true, "the button counts again when the popup closes");
}

// The desk is asked to approve what the popup shows, under the digest of something else.
async function changedMeanwhile(popup, id) {
  await popup.route("**/api/desk_request_get", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), digest: "0".repeat(64) } });
  });
  await popup.locator(`[data-request="${id}"] summary`).first().click();
  await popup.getByRole("button", { name: "Approve" }).click();
  const alert = popup.getByRole("alert").filter({ hasText: /./ });
  await given(popup, alert);
  await popup.unroute("**/api/desk_request_get");
  return alert.textContent();
}

async function folders({ desk, browser, extension, folder, token, complaints }) {
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  // A name that is no text.
  const unnamed = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]);
  writeFileSync(unnamed, "");
  await popup.getByRole("tab", { name: "Waiting" }).press("ArrowLeft");
  await popup.getByRole("button", { name: "notes" }).press("Enter");
  await popup.getByText("report.pdf").waitFor();
  check(await popup.getByText("Left out: 1 that cannot be shown").isVisible(), "what a folder leaves out is told");
  rmSync(unnamed);
  check(await popup.evaluate(() => document.activeElement.id === "folders"), "by keyboard one goes on where the folder opened");
  check(!(await popup.getByText("secret.env").isVisible()) && (await isText(popup)), "a folder shows what is in it, and not what is denied");
  await pictures(popup, "folder");
  await popup.getByRole("searchbox").fill("*.pdf");
  await popup.getByRole("button", { name: "Find" }).click();
  await popup.getByText("1 found").waitFor();
  await popup.getByRole("button", { name: "Back to the folder" }).click();
  await popup.getByText("todo.txt").waitFor();
  check(true, "files are found by name");
  await scanning(popup, folder);
  await popup.getByRole("button", { name: "Make a plan" }).click();
  await popup.getByText("notes/pdf/report.pdf").waitFor();
  check(existsSync(join(folder, "report.pdf")), "a plan shows its steps and moves nothing");
  await pictures(popup, "plan");
  await popup.getByRole("button", { name: /^Do these/ }).click();
  await given(popup, popup.getByText("It is done."));
  check(existsSync(join(folder, "pdf/report.pdf")) && !existsSync(join(folder, "report.pdf")), "done, the files are where the plan said");
  await pictures(popup, "plan-done");
  await popup.getByRole("button", { name: "Plan to take it back" }).click();
  await popup.getByRole("button", { name: /^Do (these|this)/ }).click();
  await given(popup, popup.getByText("It is done."));
  check(readFileSync(join(folder, "report.pdf"), "utf8") === "pdf" && !existsSync(join(folder, "pdf")), "taken back, they are where they were");
  await popup.getByRole("button", { name: "Back to the folder" }).click();
  await popup.getByRole("button", { name: "Trash todo.txt" }).click();
  await popup.getByRole("button", { name: "Do this step now" }).click();
  await given(popup, popup.getByText("It is done."));
  check(!existsSync(join(folder, "todo.txt")) && readdirSync(join(folder, ".trash/files")).length === 1, "a file goes into the trash by a plan");
  await agentsPlan(popup, desk, token, folder);
  await whatIsApproved(popup);
  await manyFiles(popup);
  await popup.close();
}

// A folder is looked at as a whole; what takes long says how far it is, and can be stopped.
async function scanning(popup, folder) {
  const scan = popup.getByRole("button", { name: "Scan this folder" });
  await scan.click();
  // report.pdf, todo.txt, table.csv, the bold one, and those of the folder with many.
  await popup.getByRole("heading", { name: new RegExp(`^${MANY + 4} files in 1 folder, `) }).waitFor();
  const kinds = popup.getByLabel("Kinds of files");
  check((await kinds.textContent()).includes(`${MANY + 1} files`) && !(await popup.locator("main").textContent()).includes("secret.env"), "a scan tells how much of what kind is there");
  check(await isText(popup), "and names stay text");
  await pictures(popup, "scan");
  // A file without any blocks: taking its digest takes long and no space.
  const endless = join(folder, "endless");
  writeFileSync(endless, "");
  truncateSync(endless, 2 ** 40);
  await popup.getByLabel("with digests of all files").check();
  await scan.click();
  const bar = popup.getByRole("progressbar", { name: "Progress of looking" });
  await bar.waitFor();
  await popup.getByText(/entries, \d+ bytes/).waitFor();
  check(true, "a scan that takes long says how far it is");
  await pictures(popup, "scanning");
  await popup.getByRole("button", { name: "Stop" }).click();
  await popup.getByText("The look was stopped.").waitFor();
  check((await bar.count()) === 0, "and can be stopped");
  truncateSync(endless, 3);
  await scan.click();
  await popup.getByText(`The digest of ${MANY + 5} files was taken.`).waitFor();
  check(/[0-9a-f]{64}/.test(await popup.locator("main").textContent()), "digests are shown where they were asked for");
  rmSync(endless);
  await popup.getByRole("button", { name: "Back to the folder" }).click();
  await popup.getByText("todo.txt").waitFor();
}

// What is long comes in pages, and says how much of it is shown.
async function manyFiles(popup) {
  await popup.getByRole("tab", { name: "Folders" }).click();
  await popup.getByRole("button", { name: "notes", exact: true }).click();
  await popup.getByRole("button", { name: "many/" }).click();
  const files = popup.locator(".files > li");
  await until("the first page is there", async () => (await files.count()) === 100);
  await popup.getByRole("button", { name: "Show more" }).click();
  await until("all are there", async () => (await files.count()) === MANY);
  check(true, "a long folder comes in pages");
  await popup.getByLabel("Put the files into folders").selectOption("by size");
  await popup.getByRole("button", { name: "Make a plan" }).click();
  await popup.getByRole("button", { name: `50 of ${MANY} steps are shown` }).click();
  await popup.getByRole("button", { name: `100 of ${MANY} steps are shown` }).click();
  await until("all steps are there", async () => (await popup.locator(".steps > li").count()) === MANY);
  check(true, "and so do the steps of a long plan");
}

async function jobs({ browser, extension, complaints }) {
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  await popup.getByRole("tab", { name: "Jobs" }).click();
  await popup.getByText("workspace execute").first().waitFor();
  check((await popup.getByRole("progressbar").count()) === 0, "jobs that have ended are listed without a bar");
  // One that takes its time is put in front of them.
  let state = "running";
  await popup.route("**/api/desk_job_list", async (route) => {
    const response = await route.fetch();
    const { jobs } = await response.json();
    const now = new Date(Date.now() + 1000).toISOString();
    await route.fulfill({ response, json: { jobs: [{ ...jobs[0], job: "slow", kind: "record.verify", state, created_at: now, progress: { percent: 40, text: HOSTILE } }, ...jobs] } });
  });
  await popup.route("**/api/desk_job_cancel", (route) => {
    state = route.request().postDataJSON().job === "slow" ? "cancelled" : state;
    return route.fulfill({ json: { job: "slow", state } });
  });
  const bar = popup.getByRole("progressbar", { name: "Progress of record.verify" });
  await bar.waitFor();
  check((await bar.evaluate((one) => one.value)) === 40 && (await isText(popup)), "one that goes on shows how far it is, by itself");
  await pictures(popup, "jobs");
  await popup.getByRole("button", { name: "Stop" }).click();
  await bar.waitFor({ state: "detached" });
  check(state === "cancelled", "and can be stopped");
  await popup.close();
}

// A clock that is off keeps nobody from deciding: what is signed has the desk's time.
async function clocks({ browser, extension, complaints }) {
  for (const [hours, where] of [[-1, "behind"], [1, "ahead of"]]) {
    const popup = await opened(browser, `${extension.base}popup.html`, complaints);
    await popup.clock.setFixedTime(Date.now() + hours * 3_600_000);
    // Both are signed before either's answer tells the time.
    const sent = await popup.evaluate(async () => {
      const { call } = await import("./desk.js");
      return Promise.all(["when?", "and where?"].map((content) => call("bridge_send_message", { to: "code", content })));
    });
    check(sent.every((one) => one.message_id), `what is signed by a clock that is an hour ${where} the desk's is done`, sent);
    await popup.close();
  }
}

// Whoever approves sees here what the pages and the terminal show: what a program is given, what an undoing takes back, and where
// something in the trash was. Plans as the desk tells them are put in the place of the list's newest one.
async function whatIsApproved(popup) {
  const given = { read: ["notes/many", HOSTILE], write: ["notes/out"], timeout_seconds: 30 };
  const steps = [
    { number: 1, action: "run", given, diff: "+1 if True else -1\n", irreversible: "what a program did is not taken back" },
    { number: 2, action: "run", given: { read: [], write: [], timeout_seconds: 1 }, diff: "print(1)\n" },
    { number: 3, action: "undo", undoes: "write", from: "notes/hello.html" },
    { number: 4, action: "restore", from: "todo.txt.1234", was: "notes/todo.txt", to: "notes/back.txt" },
  ];
  await popup.route("**/api/workspace_get_plan", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), kind: "python", count: steps.length, steps, next_cursor: undefined } });
  });
  await popup.getByRole("tab", { name: "Folders" }).click();
  await popup.getByRole("button", { name: "Put into the trash" }).first().click();
  const shown = popup.locator(".steps > li");
  await until("the steps are there", async () => (await shown.count()) === steps.length);
  check(await popup.getByRole("heading", { name: "Run a program" }).isVisible(), "a program's plan says that it runs one");
  const text = (number) => shown.nth(number).innerText();
  const [code, alone, undo, back] = await Promise.all([0, 1, 2, 3].map(text));
  check(/May read\s+notes\/many\s/.test(code) && /May read and change\s+notes\/out/.test(code) && code.includes("May take 30 seconds."), "a program's folders and seconds stand before its code", code);
  check((await shown.nth(0).locator("ins").count()) === 0 && code.includes("+1 if True"), "and its code is no difference of texts");
  check(alone.includes("Is given no folder.") && alone.includes("May take 1 second."), "one that is given none says so", alone);
  check(undo.includes("undo of write"), "an undoing says what it takes back", undo);
  check(back.includes("todo.txt.1234 (was notes/todo.txt)"), "and what comes out of the trash where it was", back);
  check(await isText(popup), "names of folders stay text");
  await pictures(popup, "program");
  await popup.unroute("**/api/workspace_get_plan");
  await popup.getByRole("button", { name: "Back to the folder" }).click();
}

// An agent's plan waits among the rest, and shows its steps with what they write.
async function agentsPlan(popup, desk, token, folder) {
  const steps = [{ action: "write", to: "hello.html", text: `${HOSTILE}\n` }];
  const plan = await desk.call(token, "workspace_change_plan", { root: "notes", steps, reasoning: "A page." });
  await popup.getByRole("tab", { name: "Waiting" }).click();
  await popup.locator(`[data-request="${plan.request_id}"] summary`).first().click();
  await popup.locator("ins").filter({ hasText: "<img src=x" }).waitFor();
  check(await isText(popup), "HTML in a diff stays text");
  await pictures(popup, "agents-plan");
  await popup.getByRole("button", { name: "Approve" }).click();
  await given(popup, popup.getByText("Approved."));
  await desk.call(token, "workspace_execute_plan", { plan_id: plan.plan_id });
  check(readFileSync(join(folder, "hello.html"), "utf8") === `${HOSTILE}\n`, "an agent's plan that was approved here is done as it was shown");
}

async function narrowing({ desk, options }) {
  const who = "**/api/desk_whoami";
  await options.route(who, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), role: "viewer" } });
  });
  await options.reload();
  await options.getByText("You are a viewer").waitFor();
  const text = await options.locator("#may").textContent();
  check(text.includes("only an owner decides it") && (await options.locator("#roots button").count()) === 0, "who is no owner sees what is open, and why they change nothing", text);
  await options.unroute(who);
  await options.reload();
  await options.getByText("plans may change it").waitFor();
  check((await options.locator("#may").textContent()).includes("As an owner you can take away here"), "the settings say what an owner does here, and what on the desk");
  await pictures(options, "options", 760);
  await options.getByRole("button", { name: "Make it read-only" }).click();
  await given(options, options.getByText("notes is for looking only now."));
  check(desk.cli("call", "workspace_list_roots").roots[0].access === "read", "a folder is made read-only from here");
  await options.getByRole("button", { name: "Close it" }).click();
  await given(options, options.getByText("None is open"));
  check(desk.cli("call", "workspace_list_roots").roots.length === 0, "and closed");
}

// Pages of the web get nothing, whatever the extension may.
async function strangers({ desk, browser }) {
  const stranger = await startStranger();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${stranger.port}`);
    const reach = (path, headers) => page.evaluate(([url, headers]) => fetch(url, { method: "POST", headers, body: "{}" }).then((answer) => answer.status, (error) => error.name), [desk.address + path, headers]);
    check((await reach("/api/desk_pair", { "content-type": "application/json" })) === "TypeError", "a page of the web cannot pair");
    check((await reach("/api/desk_whoami", { authorization: "Bearer x", "content-type": "application/json" })) === "TypeError", "nor call anything");
    await page.close();
  } finally {
    stranger.close();
  }
}

// The extension without its session, while somebody is signed in to the pages.
async function withoutPairing({ desk, options }) {
  const answer = await options.evaluate(
    (address) => fetch(`${address}/api/desk_whoami`, { method: "POST", credentials: "include", headers: { "content-type": "application/json" }, body: "{}" }).then((response) => response.status),
    desk.address,
  );
  check(answer === 403, "an extension gets nothing without a session of its own", answer);
}

async function unpairing({ options, page, extension }) {
  const sessions = async () => (await signedCall(page, "desk_session_list", {})).sessions.filter(({ name }) => name === "This browser").length;
  check((await sessions()) === 1, "the session is listed on the desk");
  await options.getByRole("button", { name: "Unpair" }).click();
  await options.getByText("Unpaired: the session has ended.").waitFor();
  check((await sessions()) === 0, "unpairing ends the session on the desk");
  const left = await options.evaluate(async () => {
    const open = indexedDB.open("deskmate", 1);
    const store = await new Promise((resolve) => (open.onsuccess = () => resolve(open.result)));
    const count = store.transaction("keys").objectStore("keys").count();
    return [await new Promise((resolve) => (count.onsuccess = () => resolve(count.result))), Object.keys(await chrome.storage.local.get()).length];
  });
  check(left.join() === "0,0", "and leaves neither key nor secret", left);
  await until("the button is empty", async () => (await extension.badge()) === "");
}

// A person ends the session on the desk while the browser still has it.
async function revoking({ desk, browser, page, extension, options, complaints }) {
  const { code } = await signedCall(page, "desk_pairing_start", { kind: "extension", name: "This browser" });
  await options.reload();
  await options.getByLabel("The desk's address").fill(desk.address);
  await options.getByLabel("Pairing code").fill(code);
  await options.getByRole("button", { name: "Pair" }).click();
  await options.getByRole("heading", { name: "Paired" }).waitFor();
  const { sessions } = await signedCall(page, "desk_session_list", {});
  await signedCall(page, "desk_session_revoke", { session: sessions.find(({ name }) => name === "This browser").session });
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  await popup.getByRole("button", { name: "Pair with a desk" }).first().waitFor();
  check(!(await popup.getByText("Not paired yet").isVisible()), "a session that was ended on the desk says so, and how to go on");
  await popup.close();
}

async function silence({ desk, browser, extension, complaints }) {
  await desk.halt();
  const popup = await opened(browser, `${extension.base}popup.html`, complaints);
  await popup.getByText("does not answer").first().waitFor();
  await until("the button says that the desk is gone", async () => (await extension.badge()) === "!");
  check(true, "a desk that does not answer is told, in the popup and on the button");
  await pictures(popup, "silent");
  await popup.close();
  await desk.start(new URL(desk.address).host);
}

mkdirSync(SCREENS, { recursive: true });
const desk = await startDesk();
const folder = mkdtempSync(join(desk.root, "notes-"));
for (const [name, text] of [["report.pdf", "pdf"], ["todo.txt", "txt"], ["table.csv", "csv"], ["<b>bold<b>.md", "md"], ["secret.env", "no"]]) writeFileSync(join(folder, name), text);
mkdirSync(join(folder, "many"));
for (let number = 0; number < MANY; number++) writeFileSync(join(folder, "many", `${number}.txt`), "x");
let browser;
try {
  browser = await chromium.launchPersistentContext(join(desk.root, "profile"), { ...LAUNCH, args: ARGS, ignoreDefaultArgs: ["--disable-extensions"] });
  const complaints = [];
  const page = browser.pages()[0] ?? (await browser.newPage());
  listen(page, complaints);
  await claim(page, desk);
  const settings = JSON.stringify({ workspace: { roots: [{ name: "notes", path: folder, access: "write", deny: ["*.env"] }] } });
  check((await signedCall(page, "desk_policy_apply", { document: settings })).changed, "a folder is open");
  const { token } = await signedCall(page, "desk_agent_add", { agent: "code" });
  const extension = await extensionOf(browser);
  const all = { desk, browser, page, extension, folder, token, complaints };
  const granted = await extension.worker.evaluate(() => chrome.permissions.getAll());
  check(granted.origins.sort().join() === "http://127.0.0.1/*,http://localhost/*", "it reaches this machine and nothing else unless it is asked", granted);
  const options = await pairing(all);
  await deciding(all);
  await folders(all);
  await jobs(all);
  await clocks(all);
  await narrowing({ ...all, options });
  await strangers(all);
  await withoutPairing({ ...all, options });
  await silence(all);
  await unpairing({ ...all, options });
  await revoking({ ...all, options });
  const unexpected = complaints.filter((complaint) => !provoked(complaint) && !ofHalting(desk, complaint));
  check(unexpected.length === 0, "the browser complained about nothing", unexpected);
} finally {
  await browser?.close();
  await desk.stop();
}
