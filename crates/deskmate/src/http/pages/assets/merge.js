// Brings one tree to the shape of another in place, so that focus, scroll, selection and what somebody types stay.
// Elements are the same when their ids are; those without one when they are of one kind and in the same place.
// What is marked `data-keep` belongs to the scripts and is left alone.

const KEPT = { DETAILS: ["open"], DIALOG: ["open"] };

export function merge(from, to) {
  // Most of a page is as it was, and the browser sees that quickest.
  if (from.isEqualNode(to) || from.hasAttribute("data-keep")) return;
  attributes(from, to);
  children(from, to);
}

// What somebody has begun to edit or to write about is decided as they saw it, or refused. Once it was refused and said so, what
// they look at now is what they go on with.
function isBeingEdited(form) {
  return [...(form?.querySelectorAll("textarea") ?? [])].some((area) => area.value !== area.defaultValue);
}

function attributes(from, to) {
  if (from.name === "expected_digest" && from.getAttribute("value") !== to.getAttribute("value") && !("refused" in from.dataset) && isBeingEdited(from.form)) return;
  const kept = KEPT[from.nodeName] ?? [];
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !kept.includes(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (!kept.includes(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
}

function isSame(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
}

function children(from, to) {
  const wantedIds = new Set([...to.children].map((child) => child.id));
  const known = new Map();
  for (const child of [...from.children]) {
    if (!child.id) continue;
    if (wantedIds.has(child.id)) known.set(child.id, child);
    else child.remove();
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const keyed = wanted.id ? known.get(wanted.id) : undefined;
    const match = keyed ?? (at && !at.id && isSame(at, wanted) ? at : undefined);
    if (!match) {
      from.insertBefore(wanted, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else from.insertBefore(match, at);
    if (match.nodeType !== Node.ELEMENT_NODE) {
      if (match.data !== wanted.data) match.data = wanted.data;
    } else if (match.nodeName === wanted.nodeName) merge(match, wanted);
    else match.replaceWith(wanted);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}
