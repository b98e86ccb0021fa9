// How fast the pages are, in a real browser on a real desk: the figures of docs/performance.md. Arguments choose parts.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { LAUNCH, chromium, claim, firstLoad, sleep, startDesk, until } from "./desk.mjs";

const PENDING = 5_000;
const figures = [];

// A figure, with whether it keeps what is promised.
function tell(what, target, measured, kept) {
  figures.push({ what, target, measured, kept });
  console.log(`${kept ? "" : "MISSED "}${what}: ${measured} (target ${target})`);
}

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];

// Many agents, because none of them may fill the inbox alone.
async function fillInbox(desk) {
  let number = 0;
  const worker = async () => {
    while (number < PENDING) {
      const own = number++;
      await desk.propose(`agent-${own % 250}`, `deal/${own}`, { next_step: `call ${own}`, amount: own });
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

async function loading(desk, context) {
  const page = await context.newPage();
  const bytes = await firstLoad(page, desk);
  tell("first load of the inbox, everything, compressed", "≤ 60 kB", `${(bytes / 1000).toFixed(1)} kB`, bytes <= 60_000);
  await page.close();
}

async function painting(desk, context) {
  const paints = [];
  for (let turn = 0; turn < 11; turn++) {
    const page = await context.newPage();
    await page.goto(desk.url, { waitUntil: "load" });
    const paint = () => new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime)).observe({ type: "largest-contentful-paint", buffered: true }));
    if (turn > 0) paints.push(await page.evaluate(paint));
    await page.close();
  }
  tell(`largest paint of the inbox, ${PENDING} pending`, "≤ 500 ms", `p50 ${at(paints, 0.5).toFixed(0)} ms, worst ${Math.max(...paints).toFixed(0)} ms`, Math.max(...paints) <= 500);
}

// From the answer to the agent, which comes after the commit, to the row on the screen.
async function arriving(desk, page) {
  await page.goto(desk.url);
  await page.evaluate(() => {
    globalThis.seen = new Map();
    new MutationObserver(() => {
      for (const title of document.querySelectorAll("[data-row] .title")) if (!globalThis.seen.has(title.textContent)) globalThis.seen.set(title.textContent, Date.now());
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  const waits = [];
  for (let turn = 0; turn < 40; turn++) {
    const target = `deal/new-${turn}`;
    await desk.propose(`new-${turn % 20}`, target, { note: turn }, { priority: "urgent" });
    const committed = Date.now();
    const seen = await until(`${target} is shown`, () => page.evaluate((title) => globalThis.seen.get(title), `update: ${target}`));
    waits.push(Math.max(0, seen - committed));
    await sleep(300);
  }
  tell("a new request is on the screen after its commit", "≤ 300 ms", `p50 ${at(waits, 0.5)} ms, p95 ${at(waits, 0.95)} ms, worst ${Math.max(...waits)} ms`, at(waits, 0.95) <= 300);
}

async function flood(desk, page, context) {
  await page.goto(desk.url);
  const devtools = await context.newCDPSession(page);
  const heap = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return (await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  const before = await heap();
  await page.evaluate(() => {
    globalThis.long = [];
    globalThis.reads = 0;
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
    new PerformanceObserver((list) => (globalThis.reads += list.getEntries().filter((entry) => entry.initiatorType === "fetch").length)).observe({ type: "resource" });
  });
  const begun = Date.now();
  let sent = 0;
  const calls = [];
  while (Date.now() - begun < 60_000) {
    calls.push(desk.call(`flood-${sent % 50}`, "bridge_send_message", { to: "reader", content: `number ${sent}` }));
    if (sent % 10 === 0) calls.push(desk.propose(`burst-${sent % 100}`, `deal/f${sent}`, { note: sent }, { priority: "high" }).catch(() => {}));
    sent += 1;
    await sleep(Math.max(0, begun + sent * (1000 / 60) - Date.now()));
  }
  await Promise.all(calls);
  const { long, reads } = await page.evaluate(() => ({ long: globalThis.long, reads: globalThis.reads }));
  const after = await heap();
  const worst = long.length ? Math.max(...long) : 0;
  tell("60 events a second for a minute: longest task", "≤ 50 ms", worst ? `${worst.toFixed(0)} ms, ${long.length} above 50 ms` : "none above 50 ms", worst <= 50);
  tell("the same: times the page was read again", "≤ 4 a second", `${(reads / 60).toFixed(1)} a second`, Number((reads / 60).toFixed(1)) <= 4);
  tell("the same: memory of the scripts", "flat", `${before.toFixed(1)} MB before, ${after.toFixed(1)} MB after`, after <= before + 2);
}

async function lighthouse(desk, port) {
  const home = process.env.LIGHTHOUSE;
  const { default: run } = await import(pathToFileURL(createRequire(`${home}/`).resolve("lighthouse")));
  const places = ["/", "/agents", "/policies", "/record", "/messages", "/tasks", "/tools", "/people", "/passkeys"];
  for (const place of places) {
    const result = await run(`${desk.url}${place}`, { port, onlyCategories: ["accessibility", "best-practices"], disableStorageReset: true, logLevel: "error", formFactor: "desktop", screenEmulation: { disabled: true } });
    const { accessibility, "best-practices": practices } = result.lhr.categories;
    const failed = Object.values(result.lhr.audits).filter((audit) => audit.score !== null && audit.score < 0.9 && [...accessibility.auditRefs, ...practices.auditRefs].some((ref) => ref.id === audit.id && ref.weight > 0));
    tell(`Lighthouse ${place}: accessibility, best practices`, "≥ 95", `${Math.round(accessibility.score * 100)}, ${Math.round(practices.score * 100)}${failed.length ? ` (${failed.map((audit) => `${audit.id}: ${audit.details?.items?.[0]?.node?.snippet ?? ""}`).join(", ")})` : ""}`, accessibility.score >= 0.95 && practices.score >= 0.95);
  }
}

const wanted = process.argv.slice(2);
const chosen = (part) => !wanted.length || wanted.includes(part);
const desk = await startDesk();
const port = 9_222 + Math.floor(Math.random() * 10_000);
let context;
try {
  context = await chromium.launchPersistentContext(join(desk.root, "profile"), { ...LAUNCH, args: [...LAUNCH.args, `--remote-debugging-port=${port}`], viewport: { width: 1280, height: 800 } });
  const page = context.pages()[0] ?? (await context.newPage());
  await claim(page, desk);
  if (chosen("load")) await loading(desk, context);
  await fillInbox(desk);
  if (chosen("paint")) await painting(desk, context);
  if (chosen("arrive")) await arriving(desk, page);
  if (chosen("flood")) await flood(desk, page, context);
  if (chosen("lighthouse")) await lighthouse(desk, port);
  console.log("\n| what | target | measured |\n|---|---|---|");
  for (const { what, target, measured } of figures) console.log(`| ${what} | ${target} | ${measured} |`);
  const missed = figures.filter(({ kept }) => !kept);
  for (const { what, target, measured } of missed) console.error(`missed: ${what} is ${measured}, and ${target} is promised`);
  if (missed.length) process.exitCode = 1;
} finally {
  await context?.close();
  await desk.stop();
}
