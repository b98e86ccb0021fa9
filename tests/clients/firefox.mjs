// Firefox as Debian ships it, driven over WebDriver BiDi: as much of that as the pages of an extension need.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "./desk.mjs";

// The browser talks to this machine and to nobody else: whatever would leave it goes to a proxy that is not there.
const PREFERENCES = {
  "network.proxy.type": 1,
  "network.proxy.http": "127.0.0.1",
  "network.proxy.http_port": 9,
  "network.proxy.ssl": "127.0.0.1",
  "network.proxy.ssl_port": 9,
  "network.trr.mode": 5,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "app.normandy.enabled": false,
  "app.update.disabledForTesting": true,
  "browser.aboutwelcome.enabled": false,
  "browser.startup.page": 0,
  "datareporting.policy.dataSubmissionEnabled": false,
  "services.settings.server": "data:,#",
  "toolkit.telemetry.server": "data:,",
};

// A browser with a profile of its own.
export async function startFirefox() {
  const profile = mkdtempSync(join(tmpdir(), "deskmate-firefox-"));
  writeFileSync(join(profile, "user.js"), Object.entries(PREFERENCES).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(""));
  // Pages of extensions count as the browser's own, which only this flag opens.
  const flags = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "--remote-allow-system-access"];
  const started = spawn("firefox-esr", flags, { stdio: ["ignore", "pipe", "pipe"], env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: profile } });
  const gone = new Promise((resolve) => started.once("close", resolve));
  let said = "";
  for (const stream of [started.stdout, started.stderr]) stream.on("data", (bytes) => (said += bytes));
  const stop = async () => {
    started.kill("SIGKILL");
    await gone;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    const address = await until("Firefox listens", () => said.match(/BiDi listening on (ws:\S+)/)?.[1]);
    return await connect(`${address}/session`, stop);
  } catch (error) {
    await stop();
    throw new Error(`${error.message}: ${said}`, { cause: error });
  }
}

async function connect(address, stop) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: () => reject(new Error("Firefox takes no connection")) }));
  const waiting = new Map();
  const complaints = [];
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "log.entryAdded" && message.params.level === "error") complaints.push(message.params.text);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  };
  let last = 0;
  const send = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, (answer) => (answer.type === "error" ? reject(new Error(`${method}: ${answer.message}`)) : resolve(answer.result)));
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  // Installs an extension; answers its id, and where its pages are, which the browser draws anew each time.
  const install = async (extensionData) => {
    const { extension } = await send("webExtension.install", { extensionData });
    const { contexts } = await send("browsingContext.getTree", { "moz:scope": "chrome" });
    const base = await tab(send, contexts[0].context).evaluate((id) => WebExtensionPolicy.getByID(id).getURL(""), extension);
    return { id: extension, base };
  };
  const remove = (extension) => send("webExtension.uninstall", { extension });
  const open = async (url) => {
    const { context } = await send("browsingContext.create", { type: "tab" });
    await send("browsingContext.navigate", { context, url, wait: "complete" });
    return tab(send, context);
  };
  return { complaints, install, remove, open, stop };
}

// A tab: what it holds is found by the words that people see, and used by mouse and keys, as people do.
function tab(send, context) {
  const evaluate = async (act, ...given) => {
    const expression = `(${act})(...${JSON.stringify(given)})`;
    const answer = await send("script.evaluate", { expression: `Promise.resolve(${expression}).then((found) => found instanceof Node ? found : JSON.stringify(found))`, target: { context }, awaitPromise: true });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    if (answer.result.type === "node") return answer.result.sharedId;
    return answer.result.value === undefined ? undefined : JSON.parse(answer.result.value);
  };
  const find = (selector, text) =>
    until(`${selector} with ${text}`, () =>
      evaluate(
        (selector, text) => {
          const seen = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility() && !one.disabled);
          const named = seen.find((one) => one.textContent.trim() === text) ?? seen.find((one) => one.textContent.includes(text));
          const found = named?.control ?? named;
          found?.scrollIntoView({ block: "center" });
          return found;
        },
        selector,
        text,
      ),
    );
  const click = async (selector, text) => {
    const element = { type: "element", element: { sharedId: await find(selector, text) } };
    const actions = [{ type: "pointerMove", x: 0, y: 0, origin: element }, { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }];
    await send("input.performActions", { context, actions: [{ type: "pointer", id: "mouse", actions }] });
  };
  const fill = async (label, text) => {
    await click("label", label);
    await evaluate(() => document.activeElement.select());
    const actions = [...text].flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]);
    await send("input.performActions", { context, actions: [{ type: "key", id: "keys", actions }] });
  };
  const shows = (text) => until(`the page shows ${text}`, () => evaluate((text) => document.body.innerText.includes(text), text));
  const close = () => send("browsingContext.close", { context });
  return { evaluate, find, click, fill, shows, close };
}
