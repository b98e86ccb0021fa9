// Does what TASK.md says. What it prints is the run's log; the last line, as JSON, is its result.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { call, given } from "./desk.mjs";

/** Makes the calls, one after another, and answers what came of each. */
export async function work(call, calls) {
  const done = [];
  for (const [operation, fields] of calls) done.push({ operation, answer: await call(operation, JSON.parse(fields)) });
  return done;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log(readFileSync("TASK.md", "utf8").trim());
  const done = await work(call, JSON.parse(readFileSync("calls.json", "utf8")));
  console.log(JSON.stringify({ calls: done.length, input: given() }));
}
