// Looks at files that may take long. One that does goes on as a job, and the place where it will be shown says how far it is.

import { Fault, call } from "./desk.js";
import { progressOf } from "./jobs.js";
import { act } from "./presence.js";
import { button, make, run } from "./view.js";

export async function look(place, operation, input) {
  let answer = await call(operation, { ...input, timeout_seconds: 1 });
  const { job } = answer;
  if (!job) return answer;
  const [bar, wrong] = [make("div", {}), make("div", {})];
  const stop = (event) => run(event.currentTarget, wrong, () => act("desk_job_cancel", { job }));
  const shown = make("div", { class: "looking" }, make("p", { class: "hint" }, "This takes a while; a job looks at it."), bar, make("div", { class: "acts" }, button("Stop", stop, "quiet")), wrong);
  if (!answer.ended) place.replaceChildren(shown);
  while (!answer.ended) {
    const { state = "running", progress } = answer;
    bar.replaceChildren(progressOf({ kind: "looking", state, progress }));
    answer = await call("workspace_wait_for_scan", { job, timeout_seconds: 1 });
    // Somebody went on to something else, which must not be replaced by this when it comes.
    if (!shown.isConnected) return new Promise(() => {});
  }
  if (answer.result) return answer.result;
  throw new Fault({ message: answer.error ?? "the look was stopped" });
}
