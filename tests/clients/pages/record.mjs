// The record: the timeline with its filters, one event with its proof, erasing, verifying, taking it along, and cases.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { check, screens, signedCall, until } from "../desk.mjs";

const kinds = (page) => page.locator("#rows .badges > code").allTextContents();
const listed = async (page, address) => {
  await page.goto(address);
  return kinds(page);
};
const newest = (page, input) => signedCall(page, "desk_record_list", input).then(({ events }) => events[0]);
const HOSTILE = `<script>globalThis.owned=1</script><img src=x onerror="globalThis.owned=1">"'\u202eevil\u200b\u2066 ${"long ".repeat(200)}${"x".repeat(100_000)}`;

async function timeline({ desk, page }) {
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.waitForURL(`${desk.url}/record`);
  check((await kinds(page)).includes("desk.claimed"), "the record tells from the beginning");
  check(await page.getByText("The desk got its first owner.").isVisible(), "each kind with its meaning");
  await desk.call("code", "bridge_send_message", { to: "cowork", content: "The build is green." });
  await page.getByText("The build is green.").waitFor();
  check((await kinds(page))[0] === "message.sent", "what happens appears at once, on top");
  await desk.call("cowork", "bridge_create_task", { to: "code", title: "Write the Release notes" });
  await page.getByText("Write the Release notes").waitFor();
  await screens(page, "record");
}

async function filters({ desk, page }) {
  const record = `${desk.url}/record`;
  await page.goto(record);
  await page.getByLabel("Kind", { exact: true }).selectOption("message.sent");
  await until("one kind", async () => (await kinds(page)).every((kind) => kind === "message.sent"));
  check(page.url().includes("kind=message.sent"), "a filter is an address");
  await page.goto(record);
  await page.keyboard.press("/");
  await page.keyboard.type("release NOTES");
  await page.keyboard.press("Enter");
  await until("words are found", async () => (await kinds(page)).join() === "task.created");
  check(true, "full text, in capitals or not");
  check((await listed(page, `${record}?actor=cowork`)).join() === "task.created", "by agent");
  check((await listed(page, `${record}?actor=Ada`)).length > 0, "by the name of a person");
  const { subject } = await newest(page, { kind: "message.sent" });
  check((await listed(page, `${record}?subject=${subject}`)).join() === "message.sent", "by subject");
  await page.goto(record);
  await page.getByText("Filter", { exact: true }).first().click();
  const time = (minutes) => page.evaluate((minutes) => new Date(Date.now() + minutes * 60_000 - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16), minutes);
  await page.getByLabel("From", { exact: true }).fill(await time(-60));
  await page.getByLabel("Until", { exact: true }).fill(await time(60));
  // Something happens meanwhile: what was chosen stays.
  await desk.call("code", "bridge_send_message", { to: "cowork", content: "Meanwhile." });
  await page.getByText("Meanwhile.").waitFor();
  await page.getByRole("button", { name: "Filter" }).click();
  await until("a time in the address", async () => page.url().includes("since=") && page.url().includes("until="));
  check((await kinds(page)).includes("message.sent"), "by time: within the hour");
  check((await page.getByLabel("From", { exact: true }).inputValue()) === (await time(-60)) || (await page.getByLabel("From", { exact: true }).inputValue()) !== "", "and the chosen time stays in the form");
  await page.getByLabel("Until", { exact: true }).fill(await time(-30));
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByText("Nothing fits").waitFor();
  check(true, "by time: nothing before");
  await page.getByRole("link", { name: "Show everything" }).first().click();
  await until("everything again", async () => (await kinds(page)).includes("task.created"));
  await page.goto(`${record}?since=yesterday`);
  await page.getByText("must be a time").waitFor();
  check(true, "what is no time is said to be none");
}

async function paging({ desk, page }) {
  for (let number = 0; number < 70; number++) await desk.call("many", "bridge_send_message", { to: "cowork", content: `number ${number}` });
  await page.goto(`${desk.url}/record?actor=many`);
  check((await kinds(page)).length === 50, "a page has so many");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("more rows", async () => (await kinds(page)).length === 70);
  check((await page.getByRole("link", { name: "Show more" }).count()) === 0, "and more on request, to the end");
  const first = await newest(page, { actor: "many" });
  check((await listed(page, `${desk.url}/record?actor=many&cursor=${first.seq - 60}`)).length < 12, "older ones begin where a page ended");
}

async function event({ desk, page }) {
  const { message_id: id } = await desk.call("hostile", "bridge_send_message", { to: "cowork", content: HOSTILE });
  await page.goto(`${desk.url}/record`);
  await page.getByText("hostile").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "An actor sent a message" }).waitFor();
  check(!(await page.evaluate(() => globalThis.owned)), "hostile text runs nothing");
  check((await page.locator("main script, main img").count()) === 0, "and makes no element");
  check((await page.locator("article.event").textContent()).includes("\\u{202e}"), "marks that turn text around are made visible");
  for (const text of ["unverified", "only what they said of themselves", `message:${id}`]) check((await page.locator("article.event").textContent()).includes(text), `the event says: ${text}`);
  await page.getByText("Checkpoint, hashes and key").click();
  const proof = await page.locator("#proof").textContent();
  check(proof.includes("deskmate/") && proof.includes('"kind":"message.sent"'), "with its proof");
  check(await page.getByText("deskmate audit verify record.jsonl").isVisible(), "and how to check it elsewhere");
  await screens(page, "record-event");
  await page.goto(`${desk.url}/record/999999`);
  await page.getByText("There is no such thing here").waitFor();
  check(true, "an event that is not there is said not to be");
}

async function erasing({ desk, page }) {
  const { seq } = await newest(page, { kind: "message.sent", actor: "hostile" });
  await page.goto(`${desk.url}/record/${seq}`);
  await page.getByText("Erase what was written").click();
  await page.getByLabel("Why, for the record").fill("They asked <b>nicely</b>.");
  await page.getByRole("button", { name: "Erase" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("It was erased; the event and its proof stay.").waitFor();
  // On PostgreSQL the event that tells it is sealed a moment later.
  await page.getByText("They asked <b>nicely</b>.").waitFor();
  check(true, "an erased payload is gone, with who erased it and why");
  check(!(await page.locator("article.event").textContent()).includes("globalThis"), "and its text is nowhere on the page");
  check((await page.locator("#erase").count()) === 0, "and cannot be erased again");
  await screens(page, "record-erased");
  const erasure = await newest(page, { subject: `event:${seq}` });
  await page.goto(`${desk.url}/record/${erasure.seq}`);
  await page.getByText("What it signed, and how").click();
  check((await page.locator("#signature").textContent()).includes("/api/desk_record_erase"), "what a person did shows the signature of their browser");
  await page.goto(`${desk.url}/record?subject=${(await newest(page, { kind: "message.sent", actor: "hostile" })).subject}`);
  check(await page.locator("#rows").getByText("erased").isVisible(), "the list says what was erased");
}

async function verifying({ desk, page }) {
  await page.goto(`${desk.url}/record`);
  await page.getByText("Nobody has verified this record lately.").waitFor();
  await page.getByRole("button", { name: "Verify now" }).click();
  await page.getByText("Every event fits.").waitFor({ timeout: 60_000 });
  const text = await page.locator("#verification").textContent();
  check(/sound Every event fits\. \d+ events verified/.test(text), "a verification runs to its end in the page", text);
  check((await page.locator("[data-again]").count()) === 0, "and then is left alone");
}

// The bar itself: a desk this small is verified before anybody sees it.
async function progress({ desk, page }) {
  const running = '<section class="verify lead" id="verification" data-again><p><label for="verify-progress">Verifying</label><progress id="verify-progress" max="100" value="40"></progress> 40 of 100 events</p></section>';
  const text = await page.evaluate(() => fetch("/record").then((answer) => answer.text()));
  const body = text.replace(/<section class="verify.*?<\/section>/s, running);
  let asked = 0;
  let isOver = false;
  await page.route(`${desk.url}/record`, (route) => {
    asked += 1;
    return isOver ? route.continue() : route.fulfill({ contentType: "text/html", body });
  });
  await page.goto(`${desk.url}/record`);
  check((await page.locator("progress").getAttribute("value")) === "40", "a verification under way shows how far it is");
  await until("it is looked at again", () => asked >= 2);
  isOver = true;
  await page.getByText("Every event fits.").waitFor();
  check(asked >= 3, "and is looked at again until it ends", asked);
  await page.unroute(`${desk.url}/record`);
}

async function exporting({ desk, page }) {
  await page.goto(`${desk.url}/record?actor=many`);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download what fits" }).click()]);
  const lines = readFileSync(await file.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  check(lines.length === 70 && lines.every((event) => event.actor === "many"), "what is listed can be taken along", lines.length);
  await page.goto(`${desk.url}/record`);
  const [all] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download all events" }).click()]);
  const seqs = readFileSync(await all.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line).seq);
  check(seqs.length > 200 === seqs[0] > 200 && seqs.at(-1) === 0 && seqs.length === seqs[0] + 1, "all of it is all of it, over many pages", seqs.length);
  check(await page.getByText("deskmate audit export record.jsonl").isVisible(), "and the page names the bundle that can be verified");
}

async function cases({ desk, page }) {
  const id = await desk.propose("cara", "deal/case", { note: HOSTILE.slice(0, 200) });
  await page.goto(`${desk.url}/?request=${id}`);
  await page.getByRole("link", { name: "Everything that happened to it" }).click();
  await page.getByRole("heading", { name: "update: deal/case" }).waitFor();
  check(page.url() === `${desk.url}/case/request/${id}`, "a request leads to its case");
  check(await page.getByText("nobody has decided yet").isVisible(), "which says what is missing in its chain");
  await signedCall(page, "desk_request_approve", { request: id });
  await page.getByText("A request was approved.").waitFor();
  check(true, "and is kept up to date");
  const { change } = await desk.call("cara", "cowork_begin", { proposal_id: id });
  await desk.call("cara", "cowork_log", { proposal_id: id, domain: "crm.deals", action: "update", actor: "agent", outcome: "done", executed_change: JSON.stringify(change) });
  await page.goto(`${desk.url}/case/request/${id}`);
  await until("the chain is whole", async () => {
    await page.reload();
    return (await page.getByText("each step is in the signed record").count()) === 1;
  });
  const story = await page.locator(".story code").allTextContents();
  for (const kind of ["request.created", "request.approved", "grant.issued", "grant.used", "request.finished"]) check(story.includes(kind), `the case tells of ${kind}`);
  check(story.indexOf("request.created") < story.indexOf("request.approved") && story.indexOf("grant.issued") < story.indexOf("request.finished"), "in order");
  await page.getByText(/Proofs of \d+ events/).click();
  await page.locator("#proofs details summary").first().click();
  check((await page.locator("#proofs .block").first().textContent()).includes("checkpoint"), "with a proof for each step");
  await screens(page, "case-request");
  await page.locator(".facts").getByRole("link", { name: "cara" }).first().click();
  await page.waitForURL(`${desk.url}/case/agent/cara`);
  const acts = await page.locator(".story code").allTextContents();
  check(acts.includes("request.created") && acts.includes("action.logged"), "an agent's case tells what it did", acts);
  await page.locator(".facts a", { hasText: id.slice(-8) }).first().click();
  await page.waitForURL(`${desk.url}/case/request/${id}`);
  check(true, "and leads back");
  const { task_id: task } = await desk.call("cara", "bridge_create_task", { to: "code", title: "Look after it <img src=x>" });
  await desk.call("code", "bridge_claim_task", { task_id: task });
  await page.goto(`${desk.url}/case/task/${task}`);
  await page.getByRole("heading", { name: "Look after it <img src=x>" }).waitFor();
  // What was just done may be sealed after the page was read; the page follows.
  const told = async () => (await page.locator(".story code").allTextContents()).join();
  await until("the task's story", async () => (await told()).includes("task.created") && (await told()).includes("task.claimed"));
  check(true, "a task's case tells its story");
  await screens(page, "case-task");
  await page.goto(`${desk.url}/case/agent/${encodeURIComponent("no/body <b>")}`);
  await page.getByText("The record tells nothing of it").waitFor();
  check(true, "what never was has an empty case");
  await page.goto(`${desk.url}/case/agent/many`);
  check((await page.locator(".story > li").count()) === 50, "a long case begins with the newest");
  await page.getByRole("link", { name: "Show what was before" }).click();
  await until("all of it", async () => (await page.locator(".story > li").count()) === 70);
  check(true, "and shows what was before");
}

// A search ends after so many events, says so, and goes on from there.
async function farBack({ desk, page }) {
  for (let batch = 0; batch < 13; batch++) {
    const row = (_, number) => ({ table: "timeline", row: { id: `t-${batch}-${number}`, session_id: "s", actor: "agent", event_type: "proposal", reference_id: "p", summary: "straw", created_at: "2025-12-31T10:00:00.000Z" } });
    const answer = await signedCall(page, "desk_import_cowork", { rows: Array.from({ length: 500 }, row) });
    if (answer.error) throw new Error(JSON.stringify(answer.error));
  }
  await desk.settle();
  await page.goto(`${desk.url}/record?search=desk.claimed`);
  await page.getByText("Nothing fits so far").waitFor();
  await page.getByRole("link", { name: "Look further back" }).click();
  await until("the needle", async () => (await kinds(page)).join() === "desk.claimed");
  check(true, "a search that looked through enough says so, and goes on where it ended");
  const [all] = await Promise.all([page.waitForEvent("download"), page.goto(`${desk.url}/record/events.jsonl?kind=import.row`).catch(() => {})]);
  const lines = readFileSync(await all.path(), "utf8").trim().split("\n");
  check(lines.length === 6500, "and a long download is whole", lines.length);
}

// Somebody changes a row behind the desk's back.
async function tampered({ desk, page, engine }) {
  if (engine !== "sqlite") return;
  const done = spawnSync("sqlite3", ["-cmd", ".timeout 5000", `${desk.home}/desk.db`, "update event set actor = 'somebody' where seq = 3"], { encoding: "utf8" });
  if (done.status !== 0) throw new Error(done.stderr);
  await page.goto(`${desk.url}/record`);
  await page.getByRole("button", { name: "Verify now" }).click();
  await page.getByText("Something was changed behind the desk's back.").waitFor({ timeout: 60_000 });
  check(await page.locator(".findings a", { hasText: "event 3" }).first().isVisible(), "a verification names the first event that does not fit");
  await screens(page, "record-not-sound");
}

export default async function (all) {
  for (const part of [timeline, filters, paging, event, erasing, verifying, progress, exporting, cases, farBack, tampered]) await part(all);
  // The network log of an input that was meant to be wrong is no fault of a page.
  const unmeant = all.complaints.filter((complaint) => !complaint.includes("status of 400"));
  all.complaints.splice(0, all.complaints.length, ...unmeant);
}
