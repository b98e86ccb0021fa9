"""The real Claude Code as an agent that the desk runs: confined, with the desk as its only server, its tools asked about first. A
model that is played here wants what is allowed, what is held and what is denied."""

import json
import os
import sys
import threading
import urllib.request
from http.server import ThreadingHTTPServer

from claude_code import CLAUDE, Model
from claude_hooks import approve_soon
from desk import PASSPHRASE, Desk, check

NOBODY = 65534


class Ordinary(Desk):
    """A desk under an ordinary account: programs are not confined for root, so nothing would run."""

    def __init__(self):
        super().__init__(account=NOBODY if os.geteuid() == 0 else None)


def owner(desk, operation, **fields):
    return json.loads(desk.cli("call", operation, "--json", "--input", json.dumps(fields), "--passphrase-stdin", stdin=PASSPHRASE + "\n"))


def run(desk, name, wanted):
    """One run in which the model wants one tool; answers how it ended and what the tool, or the client for it, said."""
    Model.wanted, Model.results, Model.offered, Model.heard = wanted, [], [], []
    started = owner(desk, "agents_run_agent", agentId=name, input={"what": "go"})["runId"]
    for _ in range(60):
        seen = owner(desk, "agents_wait_for_run", runId=started, timeoutSeconds=2)
        if seen["ended"]:
            break
    log = "\n".join(line["text"] for line in owner(desk, "agents_run_log", runId=started)["lines"])
    assert Model.results, f"it ended as {seen}, offered {Model.offered}: {log[-3000:]}"
    content = Model.results[0]["content"]
    text = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    return seen, text, bool(Model.results[0].get("is_error"))


def events(desk, session, kind):
    request = urllib.request.Request(f"{desk.url}/api/desk_record_list?kind={kind}&limit=200", headers={"authorization": f"Bearer {session}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["events"]


def main():
    if not CLAUDE.exists():
        print("SKIPPED: @anthropic-ai/claude-code-linux-x64 could not be installed from the npm registry (an optional package of tests/clients/package.json)")
        return
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with Ordinary() as desk:
        session = desk.claim()["session"]
        desk.register("code")
        environment = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}", "ANTHROPIC_API_KEY": "dummy", "ENABLE_TOOL_SEARCH": "false"}
        runner = {"kind": "cli", "client": "claude-code", "prompt": "Please {{input.what}}.", "program": str(CLAUDE), "given": {"environment": environment}}
        made = owner(desk, "agents_create_agent", description="Work in its folder", name="worker", runner=runner, budget={"seconds": 120})
        check(made["status"] == "draft", "an agent is made of Claude Code")
        check(owner(desk, "agents_deploy_agent", agentId="worker")["deployed"], "and deployed by a person")
        seen, said, failed = run(desk, "worker", ("Bash", {"command": "echo hello from the shell"}))
        check("hello from the shell" in said and not failed, "what is allowed runs" if not failed else said)
        check(any("Please go." in body for body in Model.heard), "with the prompt and its values")
        check(seen["state"] == "done" and seen["result"].get("type") == "result", f"and the run is done, with its result: {seen['state']}")
        seen, said, failed = run(desk, "worker", ("Bash", {"command": "rm -rf /"}))
        check(failed and "must not be done" in said, "what is denied does not run" if failed else said)
        waits = approve_soon(desk)
        seen, said, failed = run(desk, "worker", ("Bash", {"command": "touch made && ls made"}))
        waits.join()
        check("made" in said and not failed, "what is held runs once a person approved it" if not failed else said)
        seen, said, failed = run(desk, "worker", ("mcp__deskmate__bridge_send_message", {"to": "code", "content": "from the worker"}))
        check(not failed, "the desk is its server" if not failed else said)
        seen, said, failed = run(desk, "worker", ("mcp__deskmate__agents_create_agent", {"description": "another one"}))
        check("no agents" in said, "through which it makes no agents" if "no agents" in said else said)
        others = [tool for tool in Model.offered if tool.startswith("mcp__") and not tool.startswith("mcp__deskmate__")]
        check(others == [], "and it has no other server")
        told = {kind: [event for event in events(desk, session, kind) if "worker" in json.dumps(event)] for kind in ("hook.passed", "request.created", "act.denied", "run.ended")}
        check(told["hook.passed"], "the record tells what was allowed")
        check(told["request.created"], "and what was held")
        check(told["act.denied"], "and what was denied")
        check(len(told["run.ended"]) == 5, "and how each run ended")
    model.shutdown()


if __name__ == "__main__":
    sys.exit(main())
