"""Speaks to the desk as the agent whose run this is."""

import json
import os
import time
import urllib.request


def ask(operation, fields):
    """Sends one call, and answers what the desk says to it."""
    request = urllib.request.Request(
        f"{os.environ['DESKMATE_URL']}/api/{operation}",
        data=json.dumps(fields).encode(),
        headers={"authorization": f"Bearer {os.environ['DESKMATE_TOKEN']}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def call(operation, **fields):
    """Calls an operation of the desk, and answers what came of it. It waits for people where they are asked first, and raises what
    was not done, or of which nobody knows whether it was."""
    pause = 1
    while True:
        said = ask(operation, fields)
        state, is_mounted = said.get("state"), operation.startswith("gateway_")
        if said.get("refused_by_policy") or (is_mounted and state in ("denied", "failed", "ambiguous")):
            raise RuntimeError(f"{operation}: {state}: {said.get('message')}")
        if state in ("held_for_person", "paused"):
            # The same call is made once it may be. Each time that it is asked for counts, so it is asked for less and less often.
            time.sleep(pause)
            pause = min(2 * pause, 16)
        elif is_mounted and state in ("held", "passed"):
            operation, fields = "gateway_result", {"call_id": said["call_id"]}
        else:
            return said


def given():
    """What the run was started with."""
    with open("input.json") as file:
        return json.load(file)
