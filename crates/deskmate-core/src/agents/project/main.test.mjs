import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { work } from "./main.mjs";

test("every call is made in order", async () => {
  const calls = JSON.parse(readFileSync("calls.json", "utf8"));
  const made = [];
  const done = await work(async (operation) => made.push(operation), calls);
  assert.deepEqual(made, calls.map(([operation]) => operation));
  assert.equal(done.length, calls.length);
});
