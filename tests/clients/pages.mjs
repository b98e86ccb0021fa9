// Every page in a real browser, on a desk with SQLite and on one with PostgreSQL. Each file in `pages` is a part: a
// function that gets a claimed desk of its own and a page that is signed in. Arguments name the parts to run, `ENGINE` the
// only engine.

import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { LAUNCH, SCREENS, answersPresence, check, chromium, claim, engines, listen, ofHalting, provoked, settingsOf, startDesk } from "./desk.mjs";

const folder = new URL("pages/", import.meta.url);
const wanted = process.argv.slice(2);
const parts = readdirSync(folder).map((file) => file.replace(".mjs", "")).filter((part) => !wanted.length || wanted.includes(part)).sort();
mkdirSync(SCREENS, { recursive: true });

// What the page showed when a check failed: without it nobody learns why of a check that fails once in a hundred runs.
async function tellOf(page, name) {
  const said = await page.locator("#toasts > *, dialog[open], #connection:not([hidden])").allInnerTexts().catch(() => []);
  console.log(`  at ${page.url()}: ${JSON.stringify(said)}`);
  await page.screenshot({ path: join(SCREENS, `${name}.png`) }).catch(() => {});
}

const browser = await chromium.launch(LAUNCH);
try {
  for (const engine of engines()) {
    for (const part of parts) {
      console.log(`  -- ${part}, ${engine}`);
      const desk = await startDesk({ settings: settingsOf(engine, `pages_${part}`) });
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      try {
        const complaints = [];
        listen(page, complaints);
        await claim(page, desk);
        await answersPresence(page);
        const { default: run } = await import(new URL(`${part}.mjs`, folder));
        await run({ desk, page, context, browser, engine, complaints });
        const unexpected = complaints.filter((complaint) => !provoked(complaint) && !ofHalting(desk, complaint));
        check(unexpected.length === 0, "the browser complained about nothing", unexpected);
      } catch (error) {
        await tellOf(page, `failed-${part}-${engine}`);
        throw error;
      } finally {
        await context.close();
        await desk.stop();
      }
    }
  }
} finally {
  await browser.close();
}
