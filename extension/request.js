// One request with all that a person needs to decide it.

import { decide } from "./decide.js";
import { call } from "./desk.js";
import { stepsOf } from "./plan.js";
import { badge, deskLink, make, nameOf, part, said, time, valueOf, words } from "./view.js";

// The plan that a request decides about, if it does.
const planOf = ({ kind, act: asked }) => (kind === "plan" ? asked?.arguments?.plan : undefined);

export async function openRequest(id, decided) {
  const request = await call("desk_request_get", { request: id });
  const plan = planOf(request);
  return [
    make("p", { class: "meta" }, standing(request, await nameOf(request.requester_kind, request.requester))),
    plan ? part("What it changes", await stepsOf(plan)) : what(request),
    request.reasoning && part("Why", words(request.reasoning)),
    request.reversibility && part("If it goes wrong", words(request.reversibility)),
    request.hits.length > 0 && part("Rules that fired", make("ul", {}, request.hits.map(hit))),
    decide(request, decided),
    make("p", { class: "meta" }, await deskLink(`/requests/${encodeURIComponent(id)}`, "Open it on the desk")),
  ];
}

function standing({ verified, risk, confidence, trust, quorum, approvals, expires_at: until, state }, who) {
  return [
    make("strong", {}, said(who)),
    verified ? "" : [" ", badge("medium", "unverified")],
    " ",
    badge(risk, `risk ${risk}`),
    confidence === undefined ? "" : ` · ${Math.round(confidence * 100)} % sure`,
    trust ? ` · trusted ${Math.round(trust.score * 100)} %` : "",
    quorum > 1 ? ` · ${approvals} of ${quorum} people have approved` : "",
    state === "pending" ? [" · until ", time(until)] : [" ", badge(state)],
  ];
}

function what({ kind, act: asked, changes, changes_cut: cut, context, proposed }) {
  const all = asked?.arguments;
  return part(
    "What exactly",
    asked && make("p", {}, make("strong", {}, said(asked.action ?? "")), " ", said(asked.target ?? ""), asked.tool ? [" with ", make("code", {}, said(asked.tool))] : ""),
    changes.length > 0 && make("dl", { class: "changes" }, changes.map((change) => changed(change, kind))),
    all !== undefined && all !== null && make("details", { open: cut || changes.length === 0 }, make("summary", {}, "All that is approved"), valueOf(all)),
    proposed && make("details", {}, make("summary", {}, "What the agent had proposed"), valueOf(proposed)),
    context && make("details", { open: kind === "handoff" || kind === "policy" }, make("summary", {}, "Context"), valueOf(context)),
  );
}

function changed({ path, old, new: then }, kind) {
  const now = kind === "proposal" ? "now, as the agent says" : "now";
  return [
    make("dt", {}, said(path)),
    old !== undefined && make("dd", {}, make("span", { class: "meta" }, now), make("del", {}, valueOf(old))),
    then !== undefined && make("dd", {}, make("span", { class: "meta" }, "then"), make("ins", {}, valueOf(then))),
  ];
}

const hit = ({ policy, effect, reason }) => make("li", {}, badge(effect), " ", said(reason), make("span", { class: "meta" }, " ", said(policy)));
