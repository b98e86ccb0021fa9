// A plan: its steps before and after they are done, how it stands, and what can be done with it.

import { decideById } from "./decide.js";
import { call } from "./desk.js";
import { progressOf } from "./jobs.js";
import { act } from "./presence.js";
import { badge, block, button, deskLink, diffOf, fill, make, part, problem, run, said, size, spaced, tell, time, words } from "./view.js";

const STEPS = 50;
const PAUSE = 700;

const pathOf = (path) => make("code", {}, said(path));

function step({ number, action, undoes, from, was, to, given, diff, diff_bytes: all, irreversible, warning, blocked, outcome, note }) {
  const paths = [from, to].filter((path) => path !== undefined).map((path) => [pathOf(path)]);
  if (was !== undefined) paths[0]?.push(" (was ", pathOf(was), ")");
  if (paths.length === 2) paths.splice(1, 0, " → ");
  return make(
    "li",
    { value: number },
    badge(irreversible ? "critical" : "", spaced(undoes ? `${action} of ${undoes}` : action)),
    " ",
    paths,
    blocked ? [" ", badge("critical", "cannot be done")] : "",
    warning ? [" ", badge("high", "warning")] : "",
    outcome ? [" ", badge(outcome)] : "",
    [...new Set([note, irreversible, warning, blocked])].filter(Boolean).map((text) => make("p", { class: "meta" }, said(text))),
    given ? givenTo(given) : "",
    all ? make("p", { class: "meta" }, `The beginning of ${size(all)} is shown. Open the plan on the desk to read all of it.`) : "",
    diff ? make("details", { open: true }, make("summary", {}, action === "run" ? "The program" : "The text"), action === "run" ? block(diff) : diffOf(diff)) : "",
  );
}

// What a program is given: whoever approves its code approves that too.
function givenTo({ read, write, timeout_seconds: seconds }) {
  const may = [["May read", read], ["May read and change", write]].filter(([, folders]) => folders.length > 0);
  return [
    may.map(([word, folders]) => make("p", {}, word, folders.map((path) => [" ", pathOf(path)]))),
    make("p", {}, may.length ? "" : "Is given no folder. ", `May take ${seconds} ${seconds === 1 ? "second" : "seconds"}.`),
  ];
}

// The steps of a plan, a page at a time. It always says how many there are, so that nobody takes a part for the whole.
export async function stepsOf(plan) {
  const page = await call("workspace_get_plan", { plan_id: plan, limit: STEPS });
  return stepsFrom(page);
}

function stepsFrom({ plan_id: plan, count, steps, next_cursor: cursor }) {
  const list = make("ol", { class: "steps" }, steps.map(step));
  const rest = make("div", { class: "more" });
  const offer = (next) => {
    const text = `Show more: ${list.children.length} of ${count} steps are shown`;
    const read = async () => {
      const page = await call("workspace_get_plan", { plan_id: plan, limit: STEPS, cursor: next });
      list.append(...page.steps.map(step));
      return page.next_cursor ? offer(page.next_cursor) : null;
    };
    return button(text, () => fill(rest, read), "quiet");
  };
  if (cursor) rest.append(offer(cursor));
  return make("div", {}, list, rest);
}

const TITLES = { organize: "Put files into folders", change: "Change files", trash: "Put into the trash", restore: "Bring back from the trash", purge: "Delete for ever", document: "Write a document", undo: "Take a plan back", python: "Run a program" };

// A program that is given no folder is in none.
export const titleOf = ({ kind, root }) => [TITLES[kind] ?? spaced(kind), root ? [" in ", said(root)] : ""];

export function marksOf({ state, decision, applied, skipped, failed, unclear }) {
  const counts = [
    ["done", applied, "done"],
    ["skipped", skipped, "left out"],
    ["failed", failed, "failed"],
    ["unclear", unclear, "not known"],
  ];
  const shown = counts.filter(([, count]) => count > 0).map(([tone, count, word]) => badge(tone, `${count} ${word}`));
  return [badge(state), state === "ready" && decision ? badge(decision) : null, ...shown].filter(Boolean).flatMap((one) => [" ", one]);
}

// What can be done with a plan now, in the order in which one does it.
function actsOf(plan, again, open) {
  const { plan_id: id, state, decision, request_id: request, job_id: job, count } = plan;
  const wrong = make("div", {});
  const does = (operation, input, then) => (event) => run(event.currentTarget, wrong, async () => then(await act(operation, input)));
  const offers = [];
  if (state === "ready" && decision === "approved") {
    offers.push(button(`Do ${count === 1 ? "this step" : `these ${count} steps`} now`, does("workspace_execute_plan", { plan_id: id, timeout_seconds: 1 }, again)));
  } else if (state === "running" && job) {
    offers.push(button("Stop", does("desk_job_cancel", { job }, again), "quiet"));
  } else if (["done", "partly", "ambiguous"].includes(state) && !["undo", "purge", "python"].includes(plan.kind)) {
    offers.push(button("Plan to take it back", does("workspace_undo_plan", { plan_id: id }, (made) => open(made.plan_id)), "quiet"));
  }
  const decided = (text) => {
    tell(text);
    again();
  };
  const pending = state === "ready" && decision === "pending" && request;
  return [make("div", { class: "acts" }, offers), wrong, pending ? decideById(request, decided) : null];
}

const NOW = {
  planning: "The desk is looking at the files.",
  empty: "There is nothing to do.",
  running: "It is being done.",
  done: "It is done.",
  partly: "Some steps were not done; each says why.",
  ambiguous: "Of some steps nobody knows whether they were done: look at them.",
};

function standingOf({ state, decision }) {
  if (state !== "ready") return NOW[state] ?? "";
  if (decision === "approved") return "Nothing has been changed yet. Look at the steps, then do it.";
  return decision === "pending" ? "It waits for a decision. Nothing has been changed yet." : `It is ${spaced(decision ?? "not decided")}; nothing is changed.`;
}

// Shows a plan in a place, and follows it while the desk works on it. `back` leads to where one came from.
export function showPlan(place, id, back) {
  const again = () => showPlan(place, id, back);
  const open = (other) => showPlan(place, other, back);
  return fill(place, async () => {
    const plan = await call("workspace_get_plan", { plan_id: id, limit: STEPS });
    const live = make("div", { "aria-live": "polite" });
    if (["planning", "running"].includes(plan.state)) follow(plan, live, again);
    return [
      make("nav", { "aria-label": "Way back" }, button("Back to the folder", back, "quiet")),
      make("h2", {}, titleOf(plan)),
      make("p", { class: "meta" }, `${plan.count} ${plan.count === 1 ? "step" : "steps"}, ${size(plan.bytes)} · `, time(plan.created_at), marksOf(plan)),
      make("p", {}, standingOf(plan)),
      plan.note ? words(plan.note) : null,
      live,
      ...actsOf(plan, again, open),
      plan.reasoning ? part("Why", words(plan.reasoning)) : null,
      plan.steps.length ? part("Steps", stepsFrom(plan)) : null,
      make("p", { class: "meta" }, await deskLink(`/workspace/plans/${encodeURIComponent(id)}`, "Open it on the desk")),
    ];
  });
}

// Looks again until the desk has come to the plan's next stop.
function follow({ plan_id: id, state, plan_job_id: making, job_id: doing }, live, again) {
  const look = async () => {
    try {
      const plan = await call("workspace_get_plan", { plan_id: id, limit: 1 });
      if (!live.isConnected) return;
      if (plan.state !== state) return again();
      const job = await call("desk_job_get", { job: doing ?? making });
      live.replaceChildren(progressOf(job) ?? "");
      setTimeout(look, PAUSE);
    } catch (fault) {
      live.replaceChildren(problem(fault, again));
    }
  };
  setTimeout(look, PAUSE);
}
