// A real browser on the pages of a desk with SQLite and of one with PostgreSQL: claiming, signing in, joining, and what a page may
// do with the cookie alone.

import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { LAUNCH, PASSPHRASE, SCREENS, check, chromium, engines, fill, listen, provoked, screens, settingsOf, signedCall, startDesk } from "./desk.mjs";

// A page of another port: the same site, so the browser's cookie rules alone do not keep it out.
async function startStranger() {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>stranger</title>"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://deskmate.localhost:${server.address().port}` };
}

async function alertOf(page) {
  const alert = page.getByRole("alert");
  await page.waitForFunction(() => document.querySelector("[role=alert]").textContent !== "" && !document.querySelector("button").disabled);
  return alert.textContent();
}

// A form that is sent before the scripts are there is sent nowhere, so they are waited for.
async function signedIn(page, role) {
  await page.getByText(`Signed in as ${role}`).waitFor({ state: "attached", timeout: 15_000 });
  await page.waitForLoadState("load");
}

async function claiming(page, link, url) {
  await page.goto(link);
  await page.waitForURL((there) => there.origin === url);
  check(true, "a browser that knows the desk's own name goes there");
  link = link.replace("127.0.0.1", "deskmate.localhost");
  for (const time of ["first", "second"]) {
    const response = await page.goto(link);
    check(response.status() === 200 && (await page.getByLabel("Your name").isVisible()), `opening the link a ${time} time shows the form`);
    const policy = response.headers()["content-security-policy"];
    check(policy.includes("script-src 'self'") && !policy.includes("unsafe-inline"), "the page allows no inline script");
  }
  check((await page.locator("script:not([src]), [onclick], [onsubmit], [style]").count()) === 0, "and has none");
  check((await page.locator("label").count()) === (await page.locator("input").count()), "every field has a label");
  await screens(page, "claim");
  await fill(page, { "Your name": "Ada", Passphrase: PASSPHRASE, "The same again": "correct horse batter" });
  check(/differ/.test(await alertOf(page)), "a slip in the passphrase is noticed");
  await fill(page, { "The same again": PASSPHRASE });
  await signedIn(page, "owner");
  check(page.url() === `${url}/`, "claiming leads to the desk, signed in as its owner", page.url());
  await page.getByText("Nothing waits for you").waitFor();
  await screens(page, "home");
  const cookie = (await page.context().cookies()).find((cookie) => cookie.name === "deskmate_session");
  check(cookie.httpOnly && cookie.sameSite === "Strict", "the cookie is HttpOnly and SameSite=Strict");
  check(!(await page.evaluate(() => document.cookie)).includes("deskmate"), "and no script can read it");
}

const post = (page, url, body, headers = {}) =>
  page.evaluate(
    async ([url, body, headers]) => {
      const response = await fetch(url, { method: "POST", credentials: "include", headers: { "content-type": "application/json", ...headers }, body });
      return { status: response.status, body: await response.json() };
    },
    [url, body, headers],
  );

async function deciding(page, desk, stranger) {
  const { url } = desk;
  const bare = await post(page, "/api/desk_agent_add", JSON.stringify({ agent: "cookie" }));
  check(bare.status === 403, `the cookie alone configures nothing: ${bare.body.error?.message}`, bare);
  let sent;
  page.once("request", (request) => (sent = { headers: request.headers(), body: request.postData() }));
  const added = await signedCall(page, "desk_agent_add", { agent: "code" });
  check(added.token?.startsWith("dma_"), "signed with the browser's key, the same call works", added);
  const signature = Object.fromEntries(Object.entries(sent.headers).filter(([name]) => name.startsWith("deskmate-")));
  const again = await post(page, "/api/desk_agent_add", sent.body, signature);
  check(again.status === 403, `the same signature again is refused: ${again.body.error?.message}`, again);
  const other = await post(page, "/api/desk_agent_add", JSON.stringify({ agent: "other" }), { ...signature, "deskmate-signed-at": String(Date.now()) });
  check(other.status === 403, "and so is a signature over something else");
  const exported = await page.evaluate(async () => {
    const open = indexedDB.open("deskmate", 1);
    const db = await new Promise((resolve) => (open.onsuccess = () => resolve(open.result)));
    const get = db.transaction("keys").objectStore("keys").get("signing-key");
    const key = await new Promise((resolve) => (get.onsuccess = () => resolve(get.result)));
    return crypto.subtle.exportKey("pkcs8", key).then(() => "exported", (error) => error.name);
  });
  check(exported === "InvalidAccessError", "the key cannot be taken out of the browser", exported);

  const away = await page.context().newPage();
  await away.goto(stranger);
  for (const [what, type] of [["JSON", "application/json"], ["a plain form's text", "text/plain"]]) {
    const answer = await away.evaluate(
      ([url, type]) =>
        fetch(`${url}/api/desk_agent_add`, { method: "POST", credentials: "include", headers: { "content-type": type }, body: '{"agent":"stranger"}' }).then(
          (response) => response.status,
          (error) => error.name,
        ),
      [url, type],
    );
    check(answer === "TypeError", `a page of another port cannot send ${what} with the cookie`, answer);
  }
  const read = await away.evaluate((url) => fetch(`${url}/api/desk_agent_list`, { credentials: "include" }).then((r) => r.status, (e) => e.name), url);
  check(read === "TypeError", "nor read anything with it", read);
  await away.close();
  const agents = desk.cli("agent", "list").agents.map((agent) => agent.agent ?? agent.name);
  check(agents.join() === "code", "exactly one agent was added", agents);
}

// An authenticator that the browser pretends: it verifies its person by itself.
async function authenticator(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", { options });
  return { devtools, authenticatorId };
}

// Who joins with a passkey alone: signs in and shows presence with it, is told by the command line what that needs, and sets it.
async function passkeyAlone(browser, complaints, desk) {
  const { link } = desk.cli("person", "invite", "Pia", "--role", "owner");
  const context = await browser.newContext();
  const page = await context.newPage();
  listen(page, complaints);
  const { devtools, authenticatorId } = await authenticator(page);
  await page.goto(link.replace("127.0.0.1", "deskmate.localhost"));
  await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
  await page.getByRole("button", { name: "Use a passkey" }).click();
  check(/No passkey answered/.test(await alertOf(page)), "nobody joins with a passkey that does not verify them");
  await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await signedIn(page, "owner");
  check(true, "a link and a passkey are enough to join, without a passphrase");
  await page.locator(".you summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${desk.url}/sign-in`);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await signedIn(page, "owner");
  const late = { code: "forbidden", message: "this needs you to show that you are there", needs_presence: true };
  await page.route("**/api/desk_pause", (route) => route.fulfill({ status: 403, json: { error: late } }), { times: 1 });
  await page.getByRole("button", { name: "Pause all" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator("#presence").getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("button", { name: "Let agents go on" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Pause all" }).waitFor();
  check(true, "with which they sign in, and show that they are there");
  const terminal = () => {
    const owner = desk.owner;
    desk.owner = "Pia";
    try {
      return JSON.stringify(desk.cli("pause", "--all"));
    } catch (error) {
      return error.message;
    } finally {
      desk.owner = owner;
    }
  };
  const refused = terminal();
  check(/no passphrase/.test(refused) && refused.includes("/passkeys"), "the command line says what it needs, and where that is set", refused);
  await page.goto(`${desk.url}/passkeys`);
  await page.getByText("You have none. The command line").waitFor();
  await screens(page, "passkeys-alone");
  await page.getByRole("button", { name: "Take away" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("all that shows that you are there").waitFor();
  check(await page.getByRole("button", { name: "Take away" }).isVisible(), "the only passkey of somebody without a passphrase stays");
  await page.locator("#new-passphrase").fill(PASSPHRASE);
  await page.getByLabel("The same again").fill("correct horse batter");
  await page.getByRole("button", { name: "Set the passphrase" }).click();
  check(await page.getByLabel("The same again").evaluate((again) => !again.validity.valid), "a slip is noticed here, too");
  await page.getByLabel("The same again").fill(PASSPHRASE);
  await page.getByRole("button", { name: "Set the passphrase" }).click();
  await page.getByText("The passphrase is set").waitFor();
  await page.getByRole("button", { name: "Change the passphrase" }).waitFor();
  check(!/no passphrase|wrong/.test(terminal()), "and from then on it works there, too");
  await signedCall(page, "desk_resume", { all: true });
  // A clock that is off keeps nobody from signing in or from deciding: what is signed has the desk's time.
  for (const [hours, where] of [[-1, "behind"], [1, "ahead of"]]) {
    await page.clock.setFixedTime(Date.now() + hours * 3_600_000);
    await page.goto(desk.url);
    await page.locator(".you summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${desk.url}/sign-in`);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await signedIn(page, "owner");
    const made = await Promise.all(["clock", "watch"].map((note) => signedCall(page, "desk_token_create", { note, scopes: ["bridge:read"] })));
    check(made.every(({ token }) => token?.startsWith("dmp_")), `signed in with a passkey, they act by a clock that is an hour ${where} the desk's`, made);
  }
  await devtools.detach();
  await context.close();
}

async function passkeys(page, desk) {
  const { devtools, authenticatorId } = await authenticator(page);
  await page.goto(`${desk.url}/passkeys`);
  await page.getByText("You have none yet").waitFor();
  await page.getByLabel("What to call the new one").fill("This <b>laptop</b>\u202e\u200b");
  await page.getByRole("button", { name: "Make a passkey" }).click();
  await page.getByText("This <b>laptop</b>").waitFor();
  await screens(page, "passkeys");
  const late = { code: "forbidden", message: "this needs you to show that you are there", needs_presence: true };
  await page.route("**/api/desk_pause", (route) => route.fulfill({ status: 403, json: { error: late } }), { times: 1 });
  await page.getByRole("button", { name: "Pause all" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("button", { name: "Let agents go on" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Pause all" }).waitFor();
  check(true, "a passkey shows presence");
  await page.locator(".you summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${desk.url}/sign-in`);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await signedIn(page, "owner");
  check((await signedCall(page, "desk_token_list", {})).tokens, "and signs in");
  await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
  await page.goto(`${desk.url}/sign-in`);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  check(/No passkey answered/.test(await alertOf(page)), "but not for somebody whom it does not verify");
  await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
  await page.goto(`${desk.url}/passkeys`);
  await page.getByRole("button", { name: "Take away" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("You have none yet").waitFor();
  await page.goto(`${desk.url}/sign-in`);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  check(/not known/.test(await alertOf(page)), "and not after it was taken away");
  await devtools.detach();
}

async function usedLink(page, link) {
  await page.goto(link.replace("127.0.0.1", "deskmate.localhost"));
  await page.getByRole("heading", { name: "This link does not work" }).waitFor();
  const said = await page.locator("main").textContent();
  check(/used/.test(said) && /deskmate claim/.test(said) && /invitation/.test(said) && (await page.locator("form").count()) === 0, `a used link: ${said}`);
}

async function joining(browser, complaints, desk) {
  const { url } = desk;
  const { link } = desk.cli("person", "invite", "Grace", "--role", "approver");
  check(link.startsWith(`${desk.address}/join?code=`), "an invitation is a link");
  const page = await browser.newPage();
  listen(page, complaints);
  await page.goto(link.replace("127.0.0.1", "deskmate.localhost"));
  await screens(page, "join");
  await fill(page, { Passphrase: "grace's own passphrase", "The same again": "grace's own passphrase" });
  await signedIn(page, "approver");
  check((await page.locator(".you summary").textContent()) === "Grace", "joining with it signs in, with the invited role");
  await page.locator(".you summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${url}/sign-in`);
  await page.goto(url);
  check(page.url().startsWith(`${url}/sign-in`), "signing out ends it");
  await page.context().close();
}

async function signingIn(browser, complaints, url) {
  const page = await (await browser.newContext()).newPage();
  listen(page, complaints);
  await page.goto(`${url}/?view=all`);
  check(page.url() === `${url}/sign-in?next=%2F%3Fview%3Dall`, "who is not signed in is asked to", page.url());
  await screens(page, "sign-in");
  await fill(page, { "Your name": "Ada", Passphrase: PASSPHRASE });
  await signedIn(page, "owner");
  check(page.url() === `${url}/?view=all`, "signing in works, and leads to where they wanted to go", page.url());
  check((await signedCall(page, "desk_agent_add", { agent: "cowork" })).token, "and the new key signs");
  for (const away of ["https://evil.example/", "//evil.example", "/%09/evil.example", "/%5Cevil.example", "javascript:alert(1)"]) {
    await page.goto(`${url}/sign-in?next=${away}`);
    await fill(page, { "Your name": "Ada", Passphrase: PASSPHRASE });
    await signedIn(page, "owner");
    check(page.url() === `${url}/`, `signing in leads nowhere else: ${away}`, page.url());
  }
  await page.goto(`${url}/sign-in`);
  await fill(page, { "Your name": "Ada", Passphrase: "wrong passphrase" });
  const said = await alertOf(page);
  check(/wrong/.test(said), `a wrong passphrase: ${said}`);
  await screens(page, "sign-in-wrong");
  const rotated = await signedCall(page, "desk_agent_rotate", { agent: "cowork" });
  check(rotated.token, "which does not spoil the session that is open", rotated);
  let last = said;
  for (let i = 2; i <= 6 && !/locked/.test(last); i++) {
    await fill(page, { "Your name": "Ada", Passphrase: "wrong passphrase" });
    last = await alertOf(page);
    if (i < 5) check(/wrong/.test(last), `wrong passphrase number ${i}`, last);
  }
  check(/locked/.test(last), `after five of them: ${last}`, last);
  await fill(page, { "Your name": "Ada", Passphrase: PASSPHRASE });
  check(/locked/.test(await alertOf(page)), "then the right one does not help either");
  await screens(page, "sign-in-locked");
  await page.context().close();
}

const bytes = (base64) => Buffer.from(base64 ?? "", "base64");

// What the record keeps of an answer: the browser's signature over exactly this body, which names what was shown.
async function checkSigned(page, kind, request, path, body) {
  const { events } = await page.evaluate(([kind, request]) => fetch(`/api/desk_record_list?kind=${kind}&subject=request:${request}`).then((answer) => answer.json()), [kind, request]);
  const { text = "", signature, key } = events[0]?.signed ?? {};
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  const verified = key && (await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, await crypto.subtle.importKey("raw", bytes(key), curve, true, ["verify"]), bytes(signature), Buffer.from(text)));
  check(verified, `the record keeps the browser's signature over ${kind}, which anybody can check`, events);
  const hash = createHash("sha256").update(JSON.stringify(body)).digest("hex");
  check(body.expected_digest?.length === 64 && text.startsWith(`POST\n${path}\n${hash}\n`), "and what it signs is the answer with the digest of what was shown", [text, body]);
}

// A request's page: an agent's text stays text, the buttons need the passphrase, and the agent learns what was decided.
async function requests(page, desk) {
  const { url } = desk;
  const proposed = async (target) => {
    const added = await signedCall(page, "desk_agent_add", { agent: `crm-${target}` });
    const body = { agent_id: `crm-${target}`, domain: "crm.deals", action: "update", target: "<b>deal</b>", proposed_change: '{"amount": 7}', confidence: 0.9, reasoning: "<img src=x onerror=alert(1)>" };
    const answer = await fetch(`${desk.address}/api/cowork_propose`, { method: "POST", headers: { "content-type": "application/json", authorization: `Bearer ${added.token}` }, body: JSON.stringify(body) });
    return (await answer.json()).proposal_id;
  };
  const [first, second] = [await proposed("one"), await proposed("two")];
  const digestOf = async (request) => (await signedCall(page, "desk_request_get", { request })).digest;
  const digests = { first: await digestOf(first), second: await digestOf(second) };
  await page.goto(`${url}/requests/${first}`);
  await page.getByText("/amount").waitFor();
  check((await page.locator("main b, main img").count()) === 0, "an agent's text is shown as text");
  await screens(page, "request");
  // After a minute, high risk asks for the passphrase again. The minute is spared: the desk's first answer is given here.
  const late = { code: "forbidden", message: "approving this needs your passphrase again", needs_presence: true };
  await page.route("**/api/desk_request_approve", (route) => route.fulfill({ status: 403, json: { error: late } }), { times: 1 });
  await page.getByRole("button", { name: "Approve a" }).click();
  await page.getByLabel("Passphrase").fill("wrong passphrase");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("The passphrase is wrong.").waitFor();
  await page.getByLabel("Passphrase").fill(PASSPHRASE);
  await page.getByRole("button", { name: "Go on" }).click();
  await page.locator(".standing").getByText("approved by Ada").waitFor();
  check(true, "a request is approved on its page");
  await checkSigned(page, "request.approved", first, "/api/desk_request_approve", { request: first, expected_digest: digests.first });
  await page.goto(`${url}/requests/${second}`);
  await page.keyboard.press("q");
  await page.getByLabel("What you want to know").fill("How much?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByText("Waits for an answer of the agent").waitFor();
  await checkSigned(page, "request.asked", second, "/api/desk_request_ask", { request: second, expected_digest: digests.second, question: "How much?" });
  await page.keyboard.press("r");
  await page.getByLabel("Why, for the agent to learn from").fill("too much");
  await page.getByRole("button", { name: "Reject", exact: true }).click();
  await page.locator(".standing").getByText("rejected by Ada").waitFor();
  await checkSigned(page, "request.rejected", second, "/api/desk_request_reject", { request: second, expected_digest: digests.second, reason: "too much", type: "human_preference" });
  const { token } = await signedCall(page, "desk_agent_add", { agent: "stuck" });
  const { handoff_id: handoff } = await desk.call(token, "cowork_handoff", { domain: "billing", reason: "It does not match.", context: "Order 44.", attempted_actions: "none", confidence: 0.3 });
  await page.goto(`${url}/requests/${handoff}`);
  await page.keyboard.press("a");
  await page.getByLabel("What you decided").fill("The order is right.");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.locator(".standing").getByText("approved by Ada").waitFor();
  const answer = { handoff_id: handoff, expected_digest: await digestOf(handoff), resolution: "The order is right.", hand_back: true };
  await checkSigned(page, "request.approved", handoff, "/api/cowork_resolve_handoff", answer);
}

async function everything(engine) {
  console.log(`  -- ${engine}`);
  const desk = await startDesk({ settings: settingsOf(engine, "browser") });
  const { link, url } = desk;
  const stranger = await startStranger();
  let browser;
  try {
    browser = await chromium.launchPersistentContext(join(desk.root, "profile"), LAUNCH);
    const complaints = [];
    const page = browser.pages()[0] ?? (await browser.newPage());
    listen(page, complaints);
    await claiming(page, link, url);
    desk.owner = "Ada";
    await deciding(page, desk, stranger.url);
    await requests(page, desk);
    await passkeys(page, desk);
    await usedLink(page, link);
    const others = await chromium.launch(LAUNCH);
    try {
      await joining(others, complaints, desk);
      await passkeyAlone(others, complaints, desk);
      await signingIn(others, complaints, url);
    } finally {
      await others.close();
    }
    const unexpected = complaints.filter((complaint) => !provoked(complaint));
    check(unexpected.length === 0, "the browser complained about nothing", unexpected);
  } finally {
    await browser?.close();
    stranger.server.close();
    await desk.stop();
  }
}

mkdirSync(SCREENS, { recursive: true });
for (const engine of engines()) await everything(engine);
