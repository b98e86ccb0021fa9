// The extension in Firefox, from the package that is made for it: what differs between browsers is the background, the permissions,
// the origin of calls and where keys are kept. What both have in common is tried in Chromium.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { LAUNCH, PASSPHRASE, check, chromium, claim, signedCall, startDesk, until } from "./desk.mjs";
import { startFirefox } from "./firefox.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const ID = "extension@deskmate.localhost";

const badge = (tab) => tab.evaluate(() => browser.action.getBadgeText({}));

async function loading(firefox) {
  check((await firefox.install({ type: "path", path: `${ROOT}extension` })).id === ID, "the folder loads as it is");
  await firefox.remove(ID);
  execFileSync(`${ROOT}scripts/pack-extension`);
  const { id, base } = await firefox.install({ type: "archivePath", path: `${ROOT}target/extension/deskmate-firefox.zip` });
  check(id === ID, "and so does the package");
  const popup = await firefox.open(`${base}popup.html`);
  await popup.shows("Not paired yet");
  const { permissions, origins } = await popup.evaluate(() => browser.permissions.getAll());
  check([...permissions, ...origins].sort().join() === "alarms,http://127.0.0.1/*,http://localhost/*,storage", "it may do what its manifest says, and no more", { permissions, origins });
  const alarm = await until("the background runs", () => popup.evaluate(() => browser.alarms.get("badge")));
  check(alarm.periodInMinutes === 1 && (await badge(popup)) === "", "its background runs, and the button shows nothing before pairing");
  await popup.close();
  return base;
}

async function pairing(firefox, base, desk, person) {
  const options = await firefox.open(`${base}options.html`);
  const pairs = async (address, code) => {
    await options.fill("The desk's address", address);
    await options.fill("Pairing code", code);
    await options.click("button", "Pair");
  };
  await pairs("http://desk.example.org", "x");
  await options.shows("This is no address of a desk");
  await pairs(desk.address, "no-such-code");
  await options.find("[role=alert]", "code");
  check(true, "a wrong code says so");
  const { code } = await signedCall(person, "desk_pairing_start", { kind: "extension", name: "This Firefox" });
  await pairs(desk.address, code);
  await options.shows("You are Ada (owner)");
  const kept = await options.evaluate(async () => {
    const asked = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const store = await asked(indexedDB.open("deskmate", 1));
    const key = await asked(store.transaction("keys").objectStore("keys").get("signing-key"));
    store.close();
    return crypto.subtle.exportKey("pkcs8", key).then(() => "exported", (error) => error.name);
  });
  check(kept === "InvalidAccessError", "a code pairs it, with a key that cannot be taken out of the browser", kept);
  return options;
}

async function deciding(firefox, base, desk, token) {
  const request = await desk.propose(token, "deal/1", { amount: 7 });
  const popup = await firefox.open(`${base}popup.html`);
  await popup.find("[data-request] summary", "deal/1");
  await until("the button counts what waits", async () => (await badge(popup)) === "1");
  await popup.click("[data-request] summary", "deal/1");
  await popup.shows("/amount");
  check(true, "what waits is counted on the button and opens in the popup");
  await popup.click("button", "Approve");
  await popup.fill("Passphrase or PIN", PASSPHRASE);
  await popup.click("dialog button", "Go on");
  await popup.shows("Approved.");
  const answer = await desk.call(token, "cowork_get_request", { request_id: request });
  check(JSON.stringify(answer).includes("approved"), "approving is signed, asks for the passphrase, and reaches the agent");
  await desk.propose(token, "deal/2", { amount: 8 });
  await popup.close();
}

async function leaving(options, person) {
  await until("the background counts when the popup closes", async () => (await badge(options)) === "1");
  check(true, "the background counts again when the popup closes");
  await options.click("button", "Unpair");
  await options.shows("Unpaired: the session has ended.");
  const { sessions } = await signedCall(person, "desk_session_list", {});
  check(!sessions.some(({ name }) => name === "This Firefox"), "unpairing ends the session on the desk");
  check((await options.evaluate(async () => Object.keys(await browser.storage.local.get()).length)) === 0, "and leaves no secret");
  await until("the button is empty", async () => (await badge(options)) === "");
}

const desk = await startDesk();
let chrome;
let firefox;
try {
  chrome = await chromium.launch(LAUNCH);
  const person = await chrome.newPage();
  await claim(person, desk);
  const { token } = await signedCall(person, "desk_agent_add", { agent: "code" });
  firefox = await startFirefox();
  const base = await loading(firefox);
  const options = await pairing(firefox, base, desk, person);
  await deciding(firefox, base, desk, token);
  await leaving(options, person);
  check(firefox.complaints.length === 0, "the browser complained about nothing", firefox.complaints);
} finally {
  await firefox?.stop();
  await chrome?.close();
  await desk.stop();
}
