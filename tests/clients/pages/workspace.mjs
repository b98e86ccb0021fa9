// Files: a folder is opened, looked at, organised by a plan that is read, approved, done and taken back; and the trash.

import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { approve, check, screens, signedCall, until } from "../desk.mjs";

function folder(desk) {
  const path = join(desk.root, "notes");
  mkdirSync(join(path, "sub"), { recursive: true });
  writeFileSync(join(path, "letter.txt"), "Dear all\nthe old line\nbye\n");
  writeFileSync(join(path, "list.TXT"), "two");
  writeFileSync(join(path, "photo.png"), "three");
  writeFileSync(join(path, "<b>bold\u2066.md"), "<script>throw new Error('run')</script>");
  return path;
}

async function doIt(page) {
  await page.getByRole("button", { name: "Do it now" }).click();
  await page.locator("#confirm[open]").getByRole("button", { name: "Yes" }).click();
}

// What is left out is shown where it is changed, so that what is saved is what was seen.
async function leavingOut({ desk, page }) {
  const denied = async () => (await desk.call("code", "workspace_list_roots", {})).roots[0].deny;
  check(JSON.stringify(await denied()) === JSON.stringify(["**/.env", "{private,old}/"]), "a folder is opened without what its globs name, and keeps them when plans may change it", await denied());
  const field = page.locator("#deny-notes");
  const save = async (text, expected) => {
    await page.getByText("Change what is left out").click();
    check((await field.inputValue()) === (await denied()).join("\n"), "the field shows what is left out now");
    if (text !== undefined) await field.fill(text);
    await page.locator("#leave-out-notes").getByRole("button", { name: "Save" }).click();
    // It closes once it is saved.
    await page.locator("#leave-out-notes:not([open])").waitFor();
    await until(`left out is ${expected}`, async () => (await denied()).join() === expected.join());
    await until("the page shows it", async () => (await field.inputValue()) === expected.join("\n"));
  };
  await save(undefined, ["**/.env", "{private,old}/"]);
  await save("**/.env\n*.key", ["**/.env", "*.key"]);
  await save("", []);
  check(!(await page.locator("#root-notes").textContent()).includes("without"), "globs go only where somebody takes them out of the field");
}

async function opening({ desk, page }, path) {
  await page.goto(`${desk.url}/workspace`);
  await page.getByText("No folder is open to agents").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("notes");
  await page.getByLabel("Folder", { exact: true }).fill(path);
  await page.locator("#root-deny").fill("**/.env\n{private,old}/\n");
  await page.getByRole("button", { name: "Open it" }).click();
  await page.locator("#root-notes").getByText("for looking").waitFor();
  await page.getByRole("button", { name: "Let plans change it" }).click();
  await page.locator("#root-notes").getByText("plans may change it").waitFor();
  await leavingOut({ desk, page });
  await page.locator("#open-root > summary").click();
  await page.getByLabel("Name", { exact: true }).fill("notes");
  await page.getByLabel("Folder", { exact: true }).fill("/srv");
  await page.getByRole("button", { name: "Open it" }).click();
  await page.getByText("there is a root notes already").waitFor();
  check(true, "a root that is there is not changed by opening another one");
  await page.goto(`${desk.url}/workspace`);
  const { roots } = await desk.call("code", "workspace_list_roots", {});
  check(roots.length === 1 && roots[0].access === "write" && !JSON.stringify(roots).includes(path), "a folder is opened from its page, and agents do not see where it lies", roots);
}

async function looking({ desk, page }, path) {
  // A name that is no text.
  const unnamed = Buffer.concat([Buffer.from(`${path}/`), Buffer.from([0xff])]);
  writeFileSync(unnamed, "");
  await page.locator("#root-notes a").click();
  await page.getByRole("link", { name: "letter.txt" }).waitFor();
  check(await page.getByText("Left out: 1 that cannot be shown").isVisible(), "what a folder's page leaves out is told");
  rmSync(unnamed);
  check((await page.locator(".files").textContent()).includes("<b>bold\\u{2066}.md"), "names are text, whatever is in them");
  check((await page.getByRole("button", { name: "Plan to delete <b>bold\\u{2066}.md" }).count()) === 1, "also in what is read aloud");
  await screens(page, "workspace");
  await page.getByRole("link", { name: "letter.txt" }).click();
  await page.locator("pre", { hasText: "the old line" }).waitFor();
  await page.getByRole("link", { name: "notes" }).click();
  await page.getByRole("link", { name: "<b>bold\\u{2066}.md" }).click();
  await page.locator("pre", { hasText: "<script>" }).waitFor();
  check(true, "a file is read, and what is in it stays text");
}

// A plan of one's own: made, done, taken back.
async function organising({ desk, page }, path) {
  await page.goto(`${desk.url}/workspace?at=notes`);
  await page.getByText("Put the files into folders").click();
  await page.getByRole("button", { name: "Make a plan" }).click();
  await page.waitForURL(/workspace\/plans\/./);
  const trees = await page.locator(".trees section").allTextContents();
  check(trees[0].includes("letter.txt") && trees[1].includes("txt/") && trees[1].includes("png/"), "the tree before and after is shown", trees);
  await screens(page, "plan");
  await doIt(page);
  await page.getByRole("button", { name: "Plan to take it back" }).waitFor();
  check(existsSync(join(path, "txt/letter.txt")) && existsSync(join(path, "txt/list.TXT")), "the files are where the plan says");
  await page.getByRole("button", { name: "Plan to take it back" }).click();
  await page.getByText("It takes back").waitFor();
  await doIt(page);
  await until("the files are back", () => readdirSync(path).includes("letter.txt") && !existsSync(join(path, "txt")));
  check((await page.getByRole("button", { name: "Plan to take it back" }).count()) === 0, "taking back is not taken back: the plan is made anew");
  check(readdirSync(path).includes("letter.txt") && !existsSync(join(path, "txt")), "and back again, without the folders that were made");
}

// An agent's plan: it waits, a person reads what changes, and decides.
async function deciding({ desk, page }, path) {
  const steps = [
    { action: "replace", to: "letter.txt", edits: [{ old: "the old line", new: "the <i>new</i> line" }] },
    { action: "trash", from: "photo.png" },
  ];
  const plan = await desk.call("code", "workspace_change_plan", { root: "notes", steps, reasoning: "They asked for it." });
  check(plan.decision === "pending", "an agent's plan waits", plan);
  await page.goto(`${desk.url}/requests/${plan.request_id}`);
  await page.locator(".changes ins", { hasText: "the <i>new</i> line" }).waitFor();
  check((await page.locator(".changes del").first().textContent()).includes("the old line"), "the request shows what changes, line by line");
  await screens(page, "plan-request");
  await approve(page);
  await until("it is approved", async () => (await desk.call("code", "workspace_get_plan", { plan_id: plan.plan_id })).decision === "approved");
  const done = await desk.call("code", "workspace_execute_plan", { plan_id: plan.plan_id });
  check(done.state === "done" && readFileSync(join(path, "letter.txt"), "utf8").includes("the <i>new</i> line"), "then the agent does it", done);
  await page.goto(`${desk.url}/workspace/plans`);
  check((await page.locator("#plans li").count()) === 3, "all plans are listed");
  const lines = () => readFileSync(join(path, ".deskmate-audit.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  await until("what was done lies beside the files too", () => lines().some((line) => line.action === "soft_delete" && line.from === "photo.png" && line.leaf.length === 64));
  check(true, "what was done lies beside the files too");
}

async function emptying({ desk, page }, path) {
  await page.goto(`${desk.url}/workspace/trash`);
  const item = page.locator("li.row", { hasText: "photo.png" });
  await item.waitFor();
  await screens(page, "trash");
  await item.getByRole("button", { name: "Plan to bring it back" }).click();
  await doIt(page);
  await until("it is back", async () => existsSync(join(path, "photo.png")));
  check(true, "what was deleted comes back out of the trash");
  // The letter as it was before the plan: it goes for ever, by a plan of the person.
  await page.goto(`${desk.url}/workspace/trash`);
  const kept = readdirSync(join(path, ".trash/files"));
  check(kept.length === 1 && kept[0].startsWith("letter.txt"), "what was replaced is kept", kept);
  await page.locator("li.row", { hasText: "letter.txt" }).getByRole("button", { name: "Plan to delete it for ever" }).click();
  await page.waitForURL(/workspace\/plans\/./);
  await page.getByText("what leaves the trash is gone").first().waitFor();
  check(readdirSync(join(path, ".trash/files")).length === 1, "a plan to delete for ever says so, and deletes nothing yet");
  await doIt(page);
  await until("the trash is empty", () => readdirSync(join(path, ".trash/files")).length === 0);
  check((await page.getByRole("button", { name: "Plan to take it back" }).count()) === 0, "then it is gone, and that is not taken back");
  const refused = await desk.call("code", "workspace_purge_trash", { root: "notes", trash_ids: ["x"] }).catch((error) => String(error));
  check(String(refused).includes("person"), "an agent deletes nothing for ever", refused);
  await signedCall(page, "workspace_close_root", { name: "notes" });
  await page.goto(`${desk.url}/workspace`);
  await page.getByText("No folder is open to agents").waitFor();
}

// What takes long is shown with a bar, and can be stopped.
async function underWay({ desk, page }, path) {
  // A file without any blocks: taking its digest takes long and no space.
  const endless = join(path, "endless");
  writeFileSync(endless, "");
  truncateSync(endless, 2 ** 40);
  await desk.call("code", "workspace_scan_index", { root: "notes", hash_files: true, timeout_seconds: 0 });
  await page.goto(`${desk.url}/workspace`);
  const bar = page.locator("#under-way").getByRole("progressbar", { name: "Progress" });
  await bar.waitFor();
  const text = await page.locator("#under-way").textContent();
  check(text.includes("Looking at a whole tree") && /entries/.test(text), "what is under way says how far it is, by itself", text);
  await screens(page, "under-way");
  await page.locator("#under-way").getByRole("button", { name: "Stop" }).click();
  await page.locator("#confirm[open]").getByRole("button", { name: "Yes" }).click();
  await page.locator("#under-way").waitFor({ state: "detached" });
  check(true, "and goes when it is stopped");
  rmSync(endless);
}

export default async function run(given) {
  const path = folder(given.desk);
  await opening(given, path);
  await looking(given, path);
  await organising(given, path);
  await underWay(given, path);
  await deciding(given, path);
  await emptying(given, path);
}
