// Deciding about a request. What was shown is named by its digest, so that nothing else is approved, whatever became of it
// meanwhile.

import { refreshBadge } from "./badge.js";
import { call } from "./desk.js";
import { act } from "./presence.js";
import { fill, make, run, spaced } from "./view.js";

// An approval that did not approve yet, or nothing any more.
function outcome({ approved, state }, done) {
  if (approved !== false) return done;
  return state === "pending" ? "Your approval counts; more people are needed." : `Not approved: it is ${spaced(state)}.`;
}

// What can be decided about a request that waits. `decided` is told what came of it.
export function decide(request, decided) {
  const { request: id, digest, state, kind } = request;
  if (state !== "pending") return make("p", { class: "hint" }, `It is ${spaced(state)}.`);
  const handoff = kind === "handoff";
  const reason = make("textarea", { id: `reason-${id}`, rows: "2", maxlength: "2000" });
  const wrong = make("div", {});
  const send = (event, operation, input, done) =>
    run(event.currentTarget, wrong, async () => {
      const word = reason.value.trim();
      const answer = await act(operation, { request: id, ...(word ? { reason: word } : {}), ...input });
      await refreshBadge();
      decided(outcome(answer, done));
    });
  const approve = (event) => {
    if (handoff && !reason.reportValidity()) return;
    send(event, "desk_request_approve", { expected_digest: digest }, handoff ? "Answered." : "Approved.");
  };
  reason.required = handoff;
  return make(
    "form",
    { class: "decide", submit: (event) => event.preventDefault() },
    make("label", { for: reason.id }, handoff ? "What you decided, and what the agent is to do" : "A word to whoever asks"),
    reason,
    make(
      "div",
      { class: "acts" },
      make("button", { type: "button", click: approve }, handoff ? "Answer" : "Approve"),
      make("button", { type: "button", class: "alarm", click: (event) => send(event, "desk_request_reject", {}, "Rejected.") }, "Reject"),
    ),
    wrong,
  );
}

// The deciding alone, for a plan that is shown already.
export function decideById(id, decided) {
  const place = make("div", {});
  fill(place, async () => decide(await call("desk_request_get", { request: id }), decided));
  return place;
}
