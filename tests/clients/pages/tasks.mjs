// Tasks: given, claimed, blocked, changed and finished, as a list and as a board; and the files that agents reserved.

import { HOSTILE, HUGE, check, hidden, screens, signedCall, sleep, until } from "../desk.mjs";

const rows = (page) => page.locator("[data-row] .title").allTextContents();
const column = (page, name) => page.locator(`section.column[aria-label="${name}"] .title`).allTextContents();

async function giving({ desk, page }) {
  await page.goto(`${desk.url}/tasks`);
  await page.getByText("There is no task yet").waitFor();
  await page.keyboard.press("n");
  await page.getByLabel("To", { exact: true }).fill("code");
  await page.getByLabel("Title").fill("Write the release notes");
  await page.getByLabel("What is to be done").fill("All of them, since number eight.");
  await page.getByLabel("Priority").selectOption("high");
  await page.getByLabel("Until").fill("2031-05-04T10:00");
  await page.getByRole("button", { name: "Give the task" }).click();
  await page.locator("[data-row]").waitFor();
  const { tasks } = await desk.call("code", "bridge_get_tasks", {});
  check(tasks[0].title === "Write the release notes" && tasks[0].priority === "high" && tasks[0].deadline.startsWith("2031-05-04T"), "a person gives a task with priority and deadline", tasks);
  await until("the form is empty again", async () => (await page.locator("#task-title").inputValue()) === "");
  await desk.call("code", "bridge_create_task", { to: "cowork", title: "Send them out", depends_on: [tasks[0].task_id], deadline: "2020-01-01T00:00:00Z" });
  await until("the other one is listed", async () => (await rows(page)).length === 2);
  const text = await page.locator("#rows").textContent();
  check(text.includes("waits for 1") && text.includes("overdue") && text.includes("can be claimed"), "what waits, what is overdue and what can be claimed is marked", text);
  return tasks[0].task_id;
}

async function working({ desk, page }, id) {
  await page.goto(`${desk.url}/tasks/${id}`);
  await page.locator("pre", { hasText: "All of them, since number eight." }).waitFor();
  const { lease } = await desk.call("code", "bridge_claim_task", { task_id: id, lease_seconds: 3600 });
  await page.getByText("Works on it").waitFor();
  check((await page.locator("dl.facts").textContent()).includes("code"), "who works on it and until when shows at once");
  await desk.call("code", "bridge_add_task_note", { task_id: id, note: "Half of it.", percent: 50 });
  await page.getByText("Half of it.").waitFor();
  check((await page.locator("progress").getAttribute("value")) === "50", "and how far it is");
  await page.keyboard.press("c");
  await page.getByLabel("Note", { exact: true }).fill("Mind the typos.");
  await page.getByRole("button", { name: "Add the note" }).click();
  await page.locator(".thread").getByText("Mind the typos.").waitFor();
  check((await page.locator(".thread li").first().textContent()).includes("Ada"), "a person adds a note under their name");
  await desk.call("code", "bridge_update_task", { task_id: id, status: "input_needed", result: "From which version on?", fence: lease.fence });
  await page.getByText("From which version on?").waitFor();
  await page.keyboard.press("a");
  await page.getByLabel("Your answer").fill("From eight on.");
  await screens(page, "task");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await until("it is pending again", async () => (await signedCall(page, "bridge_get_task", { task_id: id })).task.status === "pending");
  check((await signedCall(page, "bridge_get_task", { task_id: id })).task.result === "From eight on.", "a question is answered, and the task goes on");
}

async function changing({ desk, page }, id) {
  await page.goto(`${desk.url}/tasks/${id}`);
  await page.keyboard.press("e");
  await page.getByLabel("Title").fill("Write all release notes");
  await page.getByLabel("To", { exact: true }).fill("cowork");
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await page.getByRole("heading", { name: "Write all release notes" }).waitFor();
  const { task, edits } = await signedCall(page, "bridge_get_task", { task_id: id });
  check(task.recipient === "cowork" && task.priority === "high" && task.description.startsWith("All of them"), "only what was changed is changed", task);
  check((await page.getByText("Who set what").count()) === 1 && (await page.getByText("Set by people, so that").count()) === 1, "and who set what is shown", edits);
  await page.locator("footer a[href^='/case/task/']").waitFor();
  // What somebody else changes meanwhile is not sent back by a form that was used before.
  await signedCall(page, "bridge_update_task", { task_id: id, priority: "urgent" });
  await page.locator(".badge", { hasText: "urgent" }).waitFor();
  await page.keyboard.press("e");
  await page.getByLabel("What is to be done").fill("All of them.");
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await page.locator("pre", { hasText: /^All of them\.$/ }).waitFor();
  const now = (await signedCall(page, "bridge_get_task", { task_id: id })).task;
  check(now.priority === "urgent" && now.title === "Write all release notes", "a second change leaves alone what it did not touch", now);
  await page.keyboard.press("e");
  await page.getByRole("button", { name: "Take the deadline away" }).click();
  await until("no deadline", async () => !(await signedCall(page, "bridge_get_task", { task_id: id })).task.deadline);
  check(true, "a deadline is taken away");
}

async function unblocking({ desk, page }, id) {
  const { tasks } = await desk.call("code", "bridge_get_tasks", { view: "created" });
  await page.goto(`${desk.url}/tasks/${tasks[0].task_id}`);
  const told = await page.locator("article").textContent();
  check(told.includes("waits for 1") && told.includes("Write all release notes"), "a task says what it waits for", told);
  await page.getByRole("button", { name: "Go on without it" }).click();
  await page.getByText("can be claimed").waitFor();
  check(true, "and goes on without it where a person says so");
  await page.goto(`${desk.url}/tasks/${id}`);
  await page.locator("summary", { hasText: "Cancel" }).click();
  await page.getByLabel("Why").fill("Not this time.");
  await page.getByRole("button", { name: "Cancel the task" }).click();
  await page.locator(".badge", { hasText: "cancelled" }).waitFor();
  check((await page.locator("summary", { hasText: "Change" }).count()) === 0, "a task is cancelled, and is then as it is");
}

async function own({ desk, page }) {
  const { task_id: id } = await desk.call("code", "bridge_create_task", { to: "Ada", title: "Call them back" });
  await page.goto(`${desk.url}/tasks?whose=assigned`);
  await page.getByText("Call them back").click();
  await page.getByRole("button", { name: "Take it up" }).click();
  await page.locator("summary", { hasText: "Finish" }).click();
  await page.getByLabel("Result").fill("They want three.");
  await page.getByRole("button", { name: "Finish" }).click();
  await page.locator(".badge", { hasText: "completed" }).waitFor();
  const { task } = await desk.call("code", "bridge_get_task", { task_id: id });
  check(task.status === "completed" && task.result === "They want three.", "a person does a task that an agent gave them", task);
}

async function board({ desk, page }) {
  await page.goto(`${desk.url}/tasks?view=board`);
  check((await column(page, "Pending")).join() === "Send them out" && (await column(page, "Finished")).length === 2, "the board has a column for each state");
  const { task_id: id } = await desk.call("cowork", "bridge_create_task", { to: "code", title: "On the board", priority: "urgent" });
  await until("it is pending", async () => (await column(page, "Pending")).includes("On the board"));
  await desk.call("code", "bridge_claim_task", { task_id: id });
  await until("it moves", async () => (await column(page, "In progress")).join() === "On the board");
  const { task_id: waits } = await desk.call("cowork", "bridge_create_task", { to: "code", title: "After the board", depends_on: [id] });
  await page.locator(`#task-${waits}`, { hasText: "waits for 1" }).waitFor();
  check(/code.* works on it, until/.test(await page.locator(`#task-${id}`).textContent()), "with who works on what, and what waits", await page.locator(`#task-${id}`).textContent());
  await desk.call("cowork", "bridge_update_task", { task_id: waits, status: "cancelled" });
  await desk.call("code", "bridge_update_task", { task_id: id, status: "failed", result: "no" });
  await until("it moves on", async () => (await column(page, "Finished")).includes("On the board"));
  check(true, "what agents do moves tasks over the board");
  await desk.call("cowork", "bridge_create_task", { to: "code", title: "Elsewhere", project: "web" });
  await page.goto(`${desk.url}/tasks?view=board`);
  await page.getByLabel("Project", { exact: true }).first().selectOption("web");
  await until("the other project", async () => (await column(page, "Pending")).join() === "Elsewhere");
  check(page.url().includes("view=board") && page.url().includes("project=web"), "other projects are found without knowing their names");
  await page.goto(`${desk.url}/tasks`);
  const elsewhere = page.locator("#elsewhere");
  check((await elsewhere.textContent()) === "This is the project default. There is more in web.", "a list says in which other projects there is more", await elsewhere.textContent());
  await elsewhere.getByRole("link", { name: "web" }).click();
  await until("the other project", async () => (await rows(page)).join() === "Elsewhere");
  await page.goto(`${desk.url}/tasks?whose=assigned`);
  check((await elsewhere.count()) === 0, "of what is asked for", await page.locator("main").textContent());
  await desk.call("code", "bridge_create_task", { to: "Ada", title: "For Ada elsewhere", project: "web" });
  await elsewhere.getByRole("link", { name: "web" }).click();
  await until("what is for her", async () => (await rows(page)).join() === "For Ada elsewhere");
  await page.goto(`${desk.url}/tasks?status=failed`);
  check((await rows(page)).length === 1, "the list is filtered by state");
}

async function hostile({ desk, page }) {
  const { task_id: id } = await desk.call("hostile", "bridge_create_task", { to: "code", title: HOSTILE, description: HUGE });
  await desk.call("code", "bridge_claim_task", { task_id: id });
  await desk.call("code", "bridge_add_task_note", { task_id: id, note: HUGE.slice(0, 16_000) });
  await desk.call("code", "bridge_update_task", { task_id: id, status: "completed", result: HUGE });
  for (const address of ["/tasks", "/tasks?view=board", `/tasks/${id}`]) {
    await page.goto(`${desk.url}${address}`);
    check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, `hostile text is text at ${address.slice(0, 12)}`);
    check((await page.locator("main").textContent()).includes("\\u{202e}") && (await hidden(page)).length === 0, "with its marks made visible", await hidden(page));
  }
  await screens(page, "task-hostile");
  await page.goto(`${desk.url}/tasks`);
  await screens(page, "tasks");
  await page.goto(`${desk.url}/tasks?view=board`);
  await screens(page, "tasks-board");
}

async function files({ desk, page }) {
  await page.goto(`${desk.url}/tasks/files`);
  await page.getByText("Nobody holds a file").waitFor();
  await desk.call("code", "bridge_reserve_paths", { paths: ["src/**", "Cargo.toml"], reason: "<b>renaming</b> a module", lease_seconds: 3600 });
  await page.getByText("Cargo.toml").waitFor();
  await desk.call("cowork", "bridge_reserve_paths", { paths: ["docs/"], mode: "shared" });
  await page.getByText("shared", { exact: true }).waitFor();
  check((await page.locator("main").textContent()).includes("<b>renaming</b> a module"), "reserved files arrive with who, how and why");
  await screens(page, "files");
  await page.getByLabel("A file or pattern").fill("src/main.rs");
  await page.keyboard.press("Enter");
  await until("one holder", async () => (await page.locator("#reservations > li").count()) === 1);
  check(true, "who holds a file is found by its name");
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Nothing fits").waitFor();
  check((await desk.call("code", "bridge_list_reservations", {})).reservations.length === 1, "and a person releases it");
  await desk.call("code", "bridge_reserve_paths", { paths: ["index.html"], project: "site" });
  await page.goto(`${desk.url}/tasks/files?project=web`);
  await page.locator("#elsewhere", { hasText: "This is the project web. There is more in default, site." }).waitFor();
  await page.locator("#elsewhere").getByRole("link", { name: "site" }).click();
  await page.locator("#reservations", { hasText: "index.html" }).waitFor();
  check(true, "files that are held in another project are found, too");
}

// More reservations than a page begins with, with hostile paths and reasons, as long as each may be.
async function manyFiles({ desk, page }) {
  const path = (number) => `src/<img src=x onerror="globalThis.owned=1">\u202e\u200b${"x".repeat(900)}/${number}`;
  for (let number = 0; number < 55; number++) await desk.call(`holder-${number}`, "bridge_reserve_paths", { paths: [path(number)], reason: `${HOSTILE}${"y".repeat(300)}`, lease_seconds: 3600 });
  await page.goto(`${desk.url}/tasks/files`);
  check((await page.locator("#reservations > li").count()) === 50, "a long list of reservations is paged");
  check(!(await page.evaluate(() => globalThis.owned)) && (await page.locator("main script, main img").count()) === 0, "hostile paths and reasons are text");
  check((await page.locator("#reservations").textContent()).includes("\\u{202e}"), "with their marks made visible");
  await screens(page, "files-hostile");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("all of them", async () => (await page.locator("#reservations > li").count()) === 56);
  const { next_cursor: cursor } = await signedCall(page, "bridge_list_reservations", { limit: 50 });
  await page.goto(`${desk.url}/tasks/files?${new URLSearchParams({ cursor })}`);
  check((await page.locator("#reservations > li").count()) === 6, "and goes on from where a page of it ends");
  await page.getByRole("link", { name: "Back to the first ones" }).click();
  await until("the first ones", async () => (await page.locator("#reservations > li").count()) === 50);
}

async function many({ desk, page }) {
  for (let number = 0; number < 55; number++) await desk.call("cowork", "bridge_create_task", { to: "code", title: `task ${number}` });
  await page.goto(`${desk.url}/tasks`);
  check((await rows(page)).length === 50, "a long list is paged");
  await page.getByRole("link", { name: "Show more" }).click();
  await until("more rows", async () => (await rows(page)).length > 55);
  await sleep(100);
  check((await rows(page))[0].startsWith("task 54"), "newest first");
  const { next_cursor: cursor } = await signedCall(page, "bridge_get_tasks", { view: "all", limit: 3 });
  await page.goto(`${desk.url}/tasks?${new URLSearchParams({ cursor })}`);
  check((await rows(page))[0].startsWith("task 51"), "a page goes on from where another one ends", await rows(page));
  await page.getByRole("link", { name: "Back to the first ones" }).click();
  await until("the first ones", async () => (await rows(page))[0].startsWith("task 54"));
}

export default async function (all) {
  const id = await giving(all);
  for (const part of [working, changing, unblocking]) await part(all, id);
  for (const part of [own, board, hostile, files, manyFiles, many]) await part(all);
}
