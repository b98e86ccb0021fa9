// What a whole folder holds, however deep: how much of what kind, the largest and the newest files.

import { look } from "./look.js";
import { button, fill, make, part, said, size, time } from "./view.js";

const count = (number, one, many) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

// A form that scans, and shows what was found in a place.
export function scanForm(at, inside, listed) {
  const digests = make("input", { type: "checkbox", id: "digests" });
  const submit = (event) => {
    event.preventDefault();
    const input = { root: at, hash_files: digests.checked };
    fill(inside, async () => found(await look(inside, "workspace_scan_index", input), listed));
  };
  return make("form", { class: "line", submit }, make("button", { class: "quiet" }, "Scan this folder"), make("label", { for: "digests" }, digests, " with digests of all files"));
}

function found({ total, hashed, extensions, largest, newest }, listed) {
  const rows = (files, about) => make("ol", { class: "rows" }, files.map((file) => make("li", {}, make("code", {}, said(file.path)), " ", make("span", { class: "meta" }, about(file)), digest(file))));
  const kinds = extensions.map(({ ext, count: files, bytes }) => make("li", {}, make("span", { class: "name" }, said(ext || "without an ending")), " ", make("span", { class: "meta" }, `${count(files, "file", "files")}, ${size(bytes)}`)));
  return [
    make("div", { class: "line" }, make("h3", {}, `${count(total.files, "file", "files")} in ${count(total.folders, "folder", "folders")}, ${size(total.bytes)}`), button("Back to the folder", listed, "quiet")),
    total.left_out > 0 && make("p", { class: "hint" }, `${count(total.left_out, "name is", "names are")} left out: not readable, too deep, or no text.`),
    hashed > 0 && make("p", { class: "hint" }, `The digest of ${count(hashed, "file", "files")} was taken.`),
    kinds.length > 0 && part("By kind", make("ol", { class: "rows", "aria-label": "Kinds of files" }, kinds)),
    largest.length > 0 && part("Largest", rows(largest, (file) => size(file.size))),
    newest.length > 0 && part("Changed last", rows(newest, (file) => time(file.mtime))),
  ];
}

const digest = ({ sha256 }) => (sha256 ? make("p", { class: "meta" }, make("code", {}, sha256)) : "");
