// Speaks to the desk as the agent whose run this is.
import { readFileSync } from "node:fs";

/** Calls an operation of the desk, and answers what it says. */
export async function call(operation: string, fields: object) {
  const answer = await fetch(`${process.env.DESKMATE_URL}/api/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.DESKMATE_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  if (!answer.ok) throw new Error(`${operation}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** What the run was started with. */
export function given() {
  return JSON.parse(readFileSync("input.json", "utf8"));
}
