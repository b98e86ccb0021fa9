// What every page has around it: what it weighs, the desk as an app of its own, and what a tab and the browser tell of what waits.

import { check, firstLoad, sleep, until } from "../desk.mjs";

// A page of the inbox as full as it begins.
async function light({ desk, page }) {
  for (let number = 0; number < 60; number++) await desk.propose(`agent-${number % 20}`, `deal/${number}`, { next_step: `call ${number}`, amount: number });
  const bytes = await firstLoad(page, desk);
  check((await page.locator("#rows > li").count()) === 50 && bytes > 20_000 && bytes <= 60_000, `the first load of the inbox is 60 kB at most, everything in it (${bytes} bytes)`, bytes);
}

// Browsers count on an icon of their own only what is installed, and install what has a manifest.
async function installable({ desk, page, context }) {
  const devtools = await context.newCDPSession(page);
  await page.goto(desk.url);
  const { url, errors, data } = await devtools.send("Page.getAppManifest");
  check(url.startsWith(`${desk.url}/assets/`) && errors.length === 0, "the manifest is there, and the browser has nothing against it", { url, errors });
  const { display, start_url: start, icons } = JSON.parse(data);
  check(display === "standalone" && new URL(start, url).href === `${desk.url}/`, "the app opens with the inbox", { display, start });
  const { status, kind } = await page.evaluate((icon) => fetch(icon).then((answer) => ({ status: answer.status, kind: answer.headers.get("content-type") })), new URL(icons[0].src, url).href);
  check(status === 200 && kind === icons[0].type, "and its icon is there", { status, kind });
  const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
  // A window that keeps nothing, as in this check, installs nothing.
  const against = installabilityErrors.map(({ errorId }) => errorId).filter((error) => error !== "in-incognito");
  check(against.length === 0, "nothing keeps the browser from installing it", against);
  await devtools.detach();
}

// A tab that is too narrow for its title shows the count on its icon.
async function counted({ desk, page }) {
  const icon = () => page.locator("link[rel=icon]").getAttribute("href");
  await until("sixty on the icon", async () => (await icon()).endsWith("/desk-60.svg"));
  const { kind, text } = await page.evaluate(async () => {
    const answer = await fetch(document.querySelector("link[rel=icon]").href);
    return { kind: answer.headers.get("content-type"), text: await answer.text() };
  });
  check(kind === "image/svg+xml" && text.includes(">60</text>"), "a tab's icon says how many wait", { kind, text });
  await desk.propose("late", "deal/late", { note: 1 });
  await until("one more", async () => (await icon()).endsWith("/desk-61.svg"));
  check(true, "and follows");
  const missing = await page.evaluate((url) => Promise.all(["desk-0.svg", "desk-100.svg", "desk-x.svg"].map((name) => fetch(new URL(name, url)).then(({ status }) => status))), await page.locator("link[rel=icon]").evaluate((link) => link.href));
  check(missing.join() === "404,404,404", "there is an icon for each count that is shown, and no other", missing);
}

// What the browser tells leads to the inbox, and leaves one alone that is open already.
async function told({ desk, page, context }) {
  await context.grantPermissions(["notifications"], { origin: desk.url });
  await page.goto(`${desk.url}/tasks`);
  await page.evaluate(() => {
    globalThis.told = [];
    globalThis.focused = 0;
    globalThis.focus = () => (globalThis.focused += 1);
    globalThis.Notification = class {
      static permission = "granted";
      close = () => (this.isClosed = true);
      constructor() {
        globalThis.told.push(this);
      }
    };
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
  });
  await desk.propose("told", "deal/told", { note: 1 });
  await until("it is told", () => page.evaluate(() => globalThis.told.length === 1));
  await page.evaluate(() => globalThis.told[0].onclick());
  await page.waitForURL(`${desk.url}/`);
  await page.getByText("update: deal/told").waitFor();
  check(await page.evaluate(() => globalThis.focused === 1 && globalThis.told[0].isClosed), "a click on what the browser tells brings the desk forward, with the inbox");
  await page.locator("[data-row]").first().click();
  await page.locator("article.request").waitFor();
  const open = page.url();
  await desk.propose("told", "deal/told-2", { note: 2 });
  await until("it is told again", () => page.evaluate(() => globalThis.told.length === 2));
  await page.evaluate(() => globalThis.told[1].onclick());
  await sleep(300);
  check(page.url() === open && (await page.evaluate(() => globalThis.focused)) === 2, "and leaves what is open in the inbox as it is", page.url());
}

// An address at which there is nothing leads on, and the kill switch is there, too.
async function astray({ desk, page }) {
  for (const address of ["/polices", "/policies/nothing", "/record/999999"]) {
    await page.goto(`${desk.url}${address}`);
    await page.getByRole("heading", { name: "There is no such thing here" }).waitFor();
    const around = [await page.locator("nav [data-go]").count(), await page.getByRole("button", { name: "Pause all" }).count()];
    check(around[0] > 5 && around[1] === 1, `${address}: what is not there is said where the page would be`, around);
  }
  await page.getByRole("button", { name: "Pause all" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("All agents are paused: every act").waitFor();
  await page.getByRole("button", { name: "Let agents go on" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Pause all" }).waitFor();
  check(true, "with the kill switch in reach");
}

export default async function (all) {
  for (const part of [light, astray, installable, counted, told]) await part(all);
}
