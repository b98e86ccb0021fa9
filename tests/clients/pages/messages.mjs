// Messages: conversations of agents and of people, as they arrive; writing, answering, receipts and groups.

import { HUGE, check, fill, forgive, invited, screens, signedCall, until } from "../desk.mjs";

const rows = (page) => page.locator("[data-row] .title").allTextContents();
const said = (page) => page.locator("li.message pre").allTextContents();
const send = (desk, agent, input) => desk.call(agent, "bridge_send_message", input);

async function arriving({ desk, page }) {
  await page.goto(`${desk.url}/messages`);
  await page.getByText("Nobody has written yet").waitFor();
  const { thread } = await send(desk, "code", { to: "cowork", content: "The build is green." });
  await until("it is listed", async () => (await rows(page)).join() === "The build is green.");
  check(true, "what agents write to each other arrives without a reload");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator("li.message").waitFor();
  check((await page.locator("li.message").textContent()).includes("unverified, claims to be code"), "and says what is known of who wrote it");
  await send(desk, "cowork", { to: "code", content: "Then release it.", thread, priority: "urgent" });
  await until("the answer is there", async () => (await said(page)).join("|") === "Then release it.|The build is green.");
  check((await page.locator("li.message").first().textContent()).includes("waits for code"), "an answer arrives in the open conversation, newest first, and says that it waits");
  const { messages } = await desk.call("code", "bridge_read_messages", { mark_read: true });
  check(messages.length === 1, "the agent reads it");
  await page.getByText("read by code").waitFor();
  check(true, "and its receipt shows at once");
  await page.keyboard.press("Escape");
  await until("nothing is open", async () => (await page.locator("li.message").count()) === 0);
  check((await rows(page)).length === 1, "Esc goes back to the list");
}

async function writing({ desk, page }) {
  await page.goto(`${desk.url}/messages`);
  await page.keyboard.press("n");
  await page.getByLabel("To", { exact: true }).fill("code");
  await page.getByLabel("Message", { exact: true }).fill("Which release is it?");
  check((await page.locator("#write-to-known option").count()) > 1, "agents that have written are offered");
  await page.getByRole("button", { name: "Send" }).click();
  await until("the conversation is open", async () => (await said(page)).join() === "Which release is it?");
  check(page.url().includes("thread="), "what was written opens as a conversation of its own");
  check((await page.locator("li.message").textContent()).includes("verified person"), "and is marked as a person's");
  const { messages } = await desk.call("code", "bridge_read_messages", {});
  check(messages[0].content === "Which release is it?" && messages[0].trust === "verified person", "the agent gets it as such", messages);
  await send(desk, "code", { to: "Ada", content: "Number nine.", reply_to: messages[0].message_id });
  await page.getByText("Number nine.").last().waitFor();
  await page.getByText("1 for you").waitFor();
  await page.keyboard.press("a");
  await page.getByText("Marked as read").waitFor();
  await until("nothing waits", async () => (await page.getByText("1 for you").count()) === 0);
  const sent = await desk.call("code", "bridge_list_sent_messages", { limit: 1 });
  check(Boolean(sent.messages[0].receipts[0].acknowledged_at), "marking as read acknowledges it", sent);
  await page.keyboard.press("r");
  check((await page.getByLabel("To", { exact: true }).inputValue()) === "code", "an answer is for whoever wrote");
  await page.getByLabel("Message", { exact: true }).fill("Good.");
  // What arrives while somebody writes takes nothing away.
  await send(desk, "code", { to: "Ada", content: "By the way.", reply_to: messages[0].message_id });
  await page.locator("li.message", { hasText: "By the way." }).waitFor();
  check((await page.getByLabel("Message", { exact: true }).inputValue()) === "Good.", "what arrives meanwhile takes nothing away of what is written");
  await page.getByLabel("Priority", { exact: true }).selectOption("high");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("li.message", { hasText: "Good." }).waitFor();
  const last = (await desk.call("code", "bridge_read_messages", {})).messages.at(0);
  check(last.content === "Good." && last.priority === "high" && last.thread === messages[0].thread, "and is sent in the same conversation", last);
  await until("the form is empty again", async () => (await page.locator("#answer-content").inputValue()) === "");
  await screens(page, "messages");
  await page.goto(`${desk.url}/messages?view=waiting`);
  check((await rows(page)).length === 1, "what waits for a person has a view of its own");
  await screens(page, "messages-list");
}

async function together(all) {
  const { desk, page } = all;
  const other = await invited(all, "Grace", "--role", "member");
  await other.page.goto(`${desk.url}/messages`);
  check((await rows(other.page)).length === 2, "another person sees the conversations too");
  await page.goto(`${desk.url}/messages?write=-`);
  await page.getByLabel("To", { exact: true }).fill("Grace");
  await page.getByLabel("Message", { exact: true }).fill("Will you look at it?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("waits for Grace").waitFor();
  await other.page.getByText("1 for you").waitFor();
  check((await other.page.locator("[data-row] .meta").first().textContent()).startsWith("Ada to Grace"), "people are shown by name", await other.page.locator("[data-row] .meta").first().textContent());
  await other.page.locator("[data-row]").first().click();
  await other.page.getByRole("button", { name: "Mark 1 as read" }).click();
  await page.getByText("read by Grace").waitFor();
  check(true, "and what one reads the other one sees");
  await other.context.close();
}

async function groups({ desk, page, complaints }) {
  await page.goto(`${desk.url}/messages/groups`);
  await page.getByText("There is no group yet").waitFor();
  await page.getByLabel("Name").fill("<b>no</b>");
  await page.getByLabel("Members: agents and people").fill("code");
  await page.getByRole("button", { name: "Make the group" }).click();
  await page.locator(".toast.alarm").waitFor();
  check((await page.locator("main b, #toasts b").count()) === 0, "a hostile name is refused, and told as text");
  await forgive(complaints, 400);
  await page.getByLabel("Name").fill("reviewers");
  await page.getByLabel("Members: agents and people").fill("code, cowork, Ada, Grace");
  await page.getByRole("button", { name: "Make the group" }).click();
  await page.locator("#group-reviewers").waitFor();
  check((await page.locator("#group-reviewers p").first().textContent()).includes("Ada"), "a group is made, and its people shown by name");
  await screens(page, "groups");
  await page.getByText("Change members").click();
  const field = page.locator("#members-reviewers");
  check(/Ada/.test(await field.inputValue()), "its members are there to change", await field.inputValue());
  await field.fill("code, cowork, Ada");
  await page.getByRole("button", { name: "Set the members" }).click();
  await until("Grace is out", async () => !(await page.locator("#group-reviewers p").first().textContent()).includes("Grace"));
  await page.getByRole("link", { name: "Write to it" }).click();
  await page.getByLabel("Message", { exact: true }).fill("To all of you.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("0 of 2 have read it").waitFor();
  await desk.call("cowork", "bridge_read_messages", { mark_read: true });
  await page.getByText("1 of 2 have read it").waitFor();
  check(true, "a group is written to, and who has read it is counted");
  const { held } = await desk.call("code", "bridge_set_group", { name: "reviewers", members: ["code"] }).catch(() => ({ held: "refused" }));
  check(Boolean(held), "an agent does not replace members that a person set");
}

async function hostile({ desk, page }) {
  const { thread } = await send(desk, "hostile", { to: "cowork", content: HUGE });
  await send(desk, "hostile", { to: "Ada", content: HUGE, thread });
  await page.goto(`${desk.url}/messages?thread=${thread}`);
  await page.locator("li.message").first().waitFor();
  check(!(await page.evaluate(() => globalThis.owned)), "hostile text runs nothing");
  check((await page.locator("main script, main img").count()) === 0, "and makes no element");
  check((await page.locator("li.message pre").first().textContent()).includes("\\u{202e}"), "marks that turn text around are made visible");
  await screens(page, "messages-hostile");
}

async function many({ desk, page }) {
  for (let number = 0; number < 55; number++) await send(desk, `agent-${number % 20}`, { to: "cowork", content: `conversation ${number}` });
  const { thread } = await send(desk, "talker", { to: "cowork", content: "line 0" });
  for (let number = 1; number < 60; number++) await send(desk, "talker", { to: "cowork", content: `line ${number}`, thread });
  await page.goto(`${desk.url}/messages?thread=${thread}`);
  check((await rows(page)).length === 50 && (await said(page)).length === 50, "long lists are paged");
  await page.locator(".detail").getByRole("link", { name: "Show more" }).click();
  await until("the whole conversation", async () => (await said(page)).length === 60);
  check((await rows(page)).length === 50, "a conversation shows more of itself");
  await page.locator(".list").getByRole("link", { name: "Show more" }).click();
  await until("more conversations", async () => (await rows(page)).length > 55);
  const [older, further] = [await signedCall(page, "desk_thread_get", { thread, limit: 58 }), await signedCall(page, "desk_thread_list", { limit: 3 })];
  await page.goto(`${desk.url}/messages?${new URLSearchParams({ thread, earlier: older.next_cursor, cursor: further.next_cursor })}`);
  check((await said(page)).length === 2 && (await page.locator("details.answer").count()) === 0, "a conversation goes on from where a page of it ends; what is newest is answered");
  check((await page.getByRole("link", { name: "Back to the first ones" }).count()) === 2, "and so does the list, with ways back");
  await page.locator(".detail").getByRole("link", { name: "Back to the first ones" }).click();
  await until("the newest messages", async () => (await said(page)).length === 50);
  await page.goto(`${desk.url}/messages?thread=nowhere`);
  await page.getByText("There is no such conversation", { exact: false }).waitFor();
  check((await signedCall(page, "desk_thread_list", { limit: 1 })).threads.length === 1, "what is not there is said");
}

export default async function (all) {
  for (const part of [arriving, writing, together, groups, hostile, many]) await part(all);
}
