// The design system's page: every part as it looks, for everybody to read and use.

import { check, screens } from "../desk.mjs";

export default async function ({ desk, page }) {
  await page.goto(`${desk.url}/design`);
  const parts = await page.locator("section.part > h3 > code").allTextContents();
  const wanted = ["space", "badge", "card", "board", "thread", "story", "lines", "log", "tree", "acts", "many", "dialog", "toast"];
  check(wanted.every((part) => parts.includes(part)), "every part has its place", parts);
  const widths = await page.locator(".space").evaluateAll((spaces) => spaces.map((space) => space.offsetWidth));
  check(widths.join() === "4,8,12,16,20", "spaces grow evenly", widths);
  await screens(page, "design");
}
