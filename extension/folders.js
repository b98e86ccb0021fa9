// Folders that are open: looking around, finding files, scanning, and asking for plans. Nothing here changes a file by itself.

import { call } from "./desk.js";
import { look } from "./look.js";
import { marksOf, showPlan, titleOf } from "./plan.js";
import { act } from "./presence.js";
import { scanForm } from "./scan.js";
import { badge, button, deskLink, empty, fill, make, part, run, said, size, time } from "./view.js";

const ROWS = 100;
const PLANS = 5;
const BY = { by_ext: "by kind of file", by_date: "by year and month", by_size: "by size" };
const lastOf = (path) => path.split("/").at(-1);

export function showFolders(place) {
  return fill(place, async () => {
    const { roots } = await call("workspace_list_roots", {});
    if (!roots.length) {
      const nothing = empty("No folder is open", "Agents and you look around only in folders that an owner named, and change them only by plans.");
      nothing.append(make("p", {}, await deskLink("/policies/draft", "Name one in the desk's settings")));
      return nothing;
    }
    const { plans } = await call("workspace_list_plans", { limit: PLANS });
    const again = () => showFolders(place);
    return [
      make("ol", { class: "rows", "aria-label": "Folders" }, roots.map((root) => rootRow(place, root))),
      plans.length > 0 && part("Latest plans", make("ol", { class: "rows" }, plans.map((plan) => planRow(place, plan, again)))),
    ];
  });
}

function rootRow(place, root) {
  const { name, access, deny, path } = root;
  return make(
    "li",
    {},
    button(said(name), () => showFolder(place, root, name), "link"),
    " ",
    badge(access, access === "write" ? "plans may change it" : "for looking"),
    make("p", { class: "meta" }, path ? make("code", {}, said(path)) : "", deny.length ? [" without ", said(deny.join(", "))] : ""),
  );
}

const planRow = (place, plan, back) => make("li", {}, button(titleOf(plan), () => showPlan(place, plan.plan_id, back), "link"), marksOf(plan), make("p", { class: "meta" }, time(plan.created_at)));

// The folders above, each of which can be opened.
function trail(place, root, at) {
  const parts = at.split("/");
  const links = parts.map((name, index) => [" / ", button(said(name), () => showFolder(place, root, parts.slice(0, index + 1).join("/")), "link")]);
  return make("nav", { class: "trail", "aria-label": "Folders above" }, button("Folders", () => showFolders(place), "link"), links);
}

function showFolder(place, root, at) {
  return fill(place, async () => {
    const inside = make("div", {});
    const listed = () => fill(inside, () => listing(inside, place, root, at));
    listed();
    return [trail(place, root, at), tools(place, root, at, inside, listed), inside];
  });
}

// Searching, scanning, and where plans may change something, putting files into folders.
function tools(place, root, at, inside, listed) {
  const sought = make("input", { type: "search", id: "sought", maxlength: "200", placeholder: "Part of a name, or *.pdf", "aria-label": `Find files beneath ${at}` });
  const find = make("form", { class: "line", role: "search" }, sought, make("button", { class: "quiet" }, "Find"));
  find.addEventListener("submit", (event) => {
    event.preventDefault();
    if (sought.value.trim()) fill(inside, () => matches(inside, at, sought.value.trim(), listed));
    else listed();
  });
  const scan = scanForm(at, inside, listed);
  if (root.access !== "write") return make("div", {}, find, scan);
  const how = make("select", { id: "how" }, Object.entries(BY).map(([value, text]) => make("option", { value }, text)));
  const wrong = make("div", {});
  const organize = (event) => {
    event.preventDefault();
    run(event.submitter, wrong, async () => {
      const { plan_id: plan } = await act("workspace_organize_plan", { root: at, policy: how.value });
      await showPlan(place, plan, () => showFolder(place, root, at));
    });
  };
  return make(
    "div",
    {},
    find,
    scan,
    make("form", { submit: organize }, make("label", { for: "how" }, "Put the files into folders"), make("div", { class: "line" }, how, make("button", {}, "Make a plan"))),
    make("p", { class: "hint" }, "You see every step first; nothing is moved before you say so."),
    wrong,
  );
}

const leftOut = (count) => count > 0 && make("p", { class: "hint" }, `Left out: ${count} that cannot be shown, such as names that are no text.`);

async function matches(inside, at, name, listed) {
  const { matches: found, truncated, left_out: left } = await look(inside, "workspace_search_files", { root: at, name, limit: ROWS });
  const rows = found.map(({ path }) => make("li", {}, make("code", {}, said(path))));
  return [
    make("div", { class: "line" }, make("h3", {}, found.length ? `${found.length} found` : "Nothing is called that"), button("Back to the folder", listed, "quiet")),
    rows.length > 0 && make("ol", { class: "rows", "aria-label": "Files that were found" }, rows),
    truncated && make("p", { class: "hint" }, "There are more: look for something narrower."),
    leftOut(left),
  ];
}

async function listing(inside, place, root, at, cursor) {
  const { items, next_cursor: next, left_out: left } = await look(inside, "workspace_list_files", { root: at, recursive: false, limit: ROWS, ignored: true, ...(cursor ? { cursor } : {}) });
  if (!items.length && !cursor && !left) return empty("Nothing is here", "Names that begin with a dot are not shown.");
  const list = make("ol", { class: "rows files", "aria-label": "Files" }, items.map((entry) => entryRow(place, root, at, entry)));
  if (!next) return [list, leftOut(left)];
  const rest = make("div", { class: "more" });
  rest.append(button("Show more", () => fill(rest, () => listing(rest, place, root, at, next)), "quiet"));
  return [list, leftOut(left), rest];
}

function entryRow(place, root, at, { path, kind, is_dir: folder, size: bytes, mtime }) {
  const name = lastOf(path);
  const wrong = make("div", {});
  const trash = (event) =>
    run(event.currentTarget, wrong, async () => {
      const { plan_id: plan } = await act("workspace_soft_delete", { path });
      await showPlan(place, plan, () => showFolder(place, root, at));
    });
  return make(
    "li",
    {},
    make(
      "div",
      { class: "line" },
      make("span", { class: "name" }, folder ? button([said(name), "/"], () => showFolder(place, root, path), "link") : said(name), kind === "link" || kind === "other" ? [" ", badge(kind)] : ""),
      make("span", { class: "meta" }, folder ? "" : [size(bytes), " · "], time(mtime)),
      root.access === "write" && make("button", { type: "button", class: "quiet small", "aria-label": `Trash ${name}`, title: "Plan to put it into the trash", click: trash }, "Trash"),
    ),
    wrong,
  );
}
