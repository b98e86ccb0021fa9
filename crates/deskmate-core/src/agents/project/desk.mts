// Speaks to the desk as the agent whose run this is.
import { readFileSync } from "node:fs";

/** Sends one call, and answers what the desk says to it. */
async function ask(operation: string, fields: object) {
  const answer = await fetch(`${process.env.DESKMATE_URL}/api/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.DESKMATE_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  if (!answer.ok) throw new Error(`${operation}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/**
 * Calls an operation of the desk, and answers what came of it. It waits for people where they are asked first, and throws what was not
 * done, or of which nobody knows whether it was.
 */
export async function call(operation: string, fields: object) {
  let pause = 1;
  for (;;) {
    const said = await ask(operation, fields);
    const isMounted = operation.startsWith("gateway_");
    if (said.refused_by_policy || (isMounted && ["denied", "failed", "ambiguous"].includes(said.state))) {
      throw new Error(`${operation}: ${said.state}: ${said.message}`);
    }
    if (["held_for_person", "paused"].includes(said.state)) {
      // The same call is made once it may be. Each time that it is asked for counts, so it is asked for less and less often.
      await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
      pause = Math.min(2 * pause, 16);
    } else if (isMounted && ["held", "passed"].includes(said.state)) {
      [operation, fields] = ["gateway_result", { call_id: said.call_id }];
    } else return said;
  }
}

/** What the run was started with. */
export function given() {
  return JSON.parse(readFileSync("input.json", "utf8"));
}
