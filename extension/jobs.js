// Work that goes on by itself: how far it is, why it failed, and stopping it.

import { call } from "./desk.js";
import { act } from "./presence.js";
import { badge, button, empty, fill, make, nameOf, problem, run, said, spaced, time, words } from "./view.js";

const ROWS = 30;
const PAUSE = 1500;
const isUnderWay = ({ state }) => ["waiting", "running"].includes(state);

// How far a job is. Without a number the bar only says that something happens.
export function progressOf({ kind, state, progress }) {
  if (!isUnderWay({ state })) return null;
  const bar = make("progress", { max: "100", value: state === "waiting" ? "0" : progress?.percent, "aria-label": `Progress of ${spaced(kind)}` });
  return make("div", { class: "progress" }, bar, progress?.text ? make("span", { class: "meta" }, said(progress.text)) : null);
}

async function fillRow(item, job, again) {
  const { job: id, kind, state, owner_kind: by, owner, attempt, attempts_max: most, created_at: at, cancel_requested: stopping } = job;
  const wrong = make("div", {});
  const stop = (event) => run(event.currentTarget, wrong, () => act("desk_job_cancel", { job: id }).then(again));
  const failed = ["failed", "ambiguous"].includes(state);
  const who = await nameOf(by, owner);
  item.replaceChildren(
    make("p", {}, make("strong", {}, spaced(kind.replaceAll(".", " "))), " ", badge(state)),
    make("p", { class: "meta" }, "for ", said(who), " · ", time(at), attempt > 1 ? ` · attempt ${attempt} of ${most}` : ""),
    progressOf(job) ?? "",
    isUnderWay(job) ? make("div", { class: "acts" }, stopping ? make("span", { class: "hint" }, "It was asked to stop.") : button("Stop", stop, "quiet")) : "",
    failed ? why(id) : "",
    wrong,
  );
}

function why(id) {
  const inside = make("div", {});
  const read = async () => words((await call("desk_job_get", { job: id })).error ?? "It does not say why.");
  return make("details", { toggle: (event) => event.target.open && fill(inside, read) }, make("summary", {}, "What went wrong"), inside);
}

export function showJobs(place) {
  return fill(place, async () => {
    const list = make("ol", { class: "rows", "aria-label": "Jobs" });
    const nothing = empty("There is no job", "Work that takes a while, such as making and doing a plan, is shown here while it goes on.");
    const rows = new Map();
    // Only a row that changed is made anew, so that whoever stands on a button keeps standing on it.
    const read = async () => {
      const { jobs } = await call("desk_job_list", { limit: ROWS });
      for (const job of jobs.toReversed()) {
        const row = rows.get(job.job) ?? { item: make("li", {}), text: "" };
        if (!rows.has(job.job)) list.prepend(row.item);
        if (row.text !== JSON.stringify(job)) await fillRow(row.item, job, read);
        rows.set(job.job, { item: row.item, text: JSON.stringify(job) });
      }
      nothing.hidden = rows.size > 0;
    };
    const follow = () =>
      setTimeout(async () => {
        if (!list.isConnected || place.hidden) return;
        try {
          await read();
          follow();
        } catch (fault) {
          place.replaceChildren(problem(fault, () => showJobs(place)));
        }
      }, PAUSE);
    await read();
    follow();
    return [nothing, list];
  });
}
