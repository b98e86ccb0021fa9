// What waits for people, as the inbox orders it. Each request opens in place.

import { call } from "./desk.js";
import { openRequest } from "./request.js";
import { badge, button, empty, fill, make, nameOf, said, spaced, tell, time } from "./view.js";

const ROWS = 30;

// A row. What it holds is read when it is opened, so that what is decided is what was seen.
async function row(request) {
  const { request: id, title, requester_kind: by, requester, verified, kind, domain, risk, priority, created_at: at } = request;
  const inside = make("div", { class: "opened" });
  const summary = make(
    "summary",
    {},
    make("span", { class: "title" }, title ? said(title) : "erased"),
    make("span", { class: "meta" }, said(await nameOf(by, requester)), verified ? "" : " (unverified)", ` · ${spaced(kind)} in `, said(domain), " · ", time(at)),
    make("span", { class: "badges" }, risk !== "low" && badge(risk, `risk ${risk}`), priority !== "normal" && badge(priority)),
  );
  const details = make("details", {}, summary, inside);
  const item = make("li", { "data-request": id }, details);
  const decided = (said) => {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    tell(said);
    item.remove();
    if (next) next.querySelector("summary").focus();
    else showWaiting(document.getElementById("waiting"));
  };
  details.addEventListener("toggle", () => details.open && fill(inside, () => openRequest(id, decided)));
  return item;
}

const rowsOf = (requests) => Promise.all(requests.map(row));

export function showWaiting(place) {
  return fill(place, async () => {
    const { requests, next_cursor: cursor } = await call("desk_request_list", { limit: ROWS });
    if (!requests.length) return empty("Nothing waits for you", "What agents want to do and may not do alone arrives here.");
    const list = make("ol", { class: "rows", "aria-label": "What waits" }, await rowsOf(requests));
    return [list, cursor && more(list, cursor)];
  });
}

function more(list, cursor) {
  const place = make("div", { class: "more" });
  place.append(
    button("Show more", () =>
      fill(place, async () => {
        const { requests, next_cursor: next } = await call("desk_request_list", { limit: ROWS, cursor });
        list.append(...(await rowsOf(requests)));
        return next && more(list, next);
      }), "quiet"),
  );
  return place;
}
