"""The real Claude Code: it connects, and a model that is played here sends and reads messages through it. No login."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from desk import BINARY, PASSPHRASE, Desk, check

CLAUDE = Path(os.environ["CLIENTS"], "node_modules/@anthropic-ai/claude-code-linux-x64/claude")


class Model(BaseHTTPRequestHandler):
    """Plays the Messages API: asks for one tool call, then ends the turn, and keeps what the tool answered."""

    wanted = None
    offered = []
    results = []
    heard = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}"
        Model.heard.append(body.decode())
        request = json.loads(body)
        if not self.path.startswith("/v1/messages"):
            return self.answer(404, b"{}")
        if "count_tokens" in self.path:
            return self.answer(200, b'{"input_tokens": 1}')
        tools = [tool["name"] for tool in request.get("tools", [])]
        said = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
        # What hooks add may stand after a result, so it is sought in all that was said.
        results = [block for content in said for block in content if block.get("type") == "tool_result"]
        Model.offered = tools or Model.offered
        Model.results = results or Model.results
        tool, arguments = Model.wanted
        if results or tool not in tools:
            block, reason = {"type": "text", "text": "Done."}, "end_turn"
        else:
            block, reason = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}, "tool_use"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [block], "stop_reason": reason,
                   "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not request.get("stream"):
            return self.answer(200, json.dumps(message).encode())
        self.answer(200, b"".join(stream(message, block)), "text/event-stream")

    def do_GET(self):
        self.answer(404, b"{}")

    do_HEAD = do_GET

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def stream(message, block):
    """The same message as server-sent events."""
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def claude(desk, *args, **env):
    quiet = {"TERM": "dumb", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    work = desk.root / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run([str(CLAUDE), *args], env=desk.env(**quiet, **env), cwd=work, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def ask(desk, port, server, tool, arguments):
    """One run in which the model wants one tool call; answers what the tool said."""
    Model.wanted, Model.results, Model.offered = (f"mcp__desk__{tool}", arguments), [], []
    config = desk.root / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"desk": server}}))
    code, said = claude(desk, "-p", "go", "--output-format", "json", "--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", f"mcp__desk__{tool}",
                        ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}", ANTHROPIC_API_KEY="dummy", ENABLE_TOOL_SEARCH="false")
    assert code == 0 and Model.results, f"Claude Code ended with {code}, offered {Model.offered}: {said[-2000:]}"
    content = Model.results[0]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def narrowed(desk, port, token):
    """Claude Code names the folder that it was started in as its root: its tools for files reach that, and nothing besides."""
    (desk.root / "other").mkdir()
    draft = desk.root / "draft.yaml"
    folders = ", ".join(f"{{ name: {name}, path: {desk.root / name} }}" for name in ("work", "other"))
    draft.write_text(f"workspace: {{ roots: [{folders}] }}\n")
    desk.cli("policy", "apply", str(draft), "--passphrase-stdin", stdin=PASSPHRASE + "\n")
    stdio = ["mcp", "--toolset", "workspace", "--home", str(desk.home)]
    servers = {
        "stdio": {"type": "stdio", "command": BINARY, "args": stdio, "env": {"DESKMATE_TOKEN": token}},
        "http": {"type": "http", "url": f"{desk.url}/mcp/workspace", "headers": {"Authorization": f"Bearer {token}"}},
    }
    for way, server in servers.items():
        said = ask(desk, port, server, "list_roots", {})
        check('"work"' in said and '"other"' not in said, f"{way}: the roots of Claude Code narrow what it reaches" if '"work"' in said else said)


def main():
    if not CLAUDE.exists():
        print("SKIPPED: @anthropic-ai/claude-code-linux-x64 could not be installed from the npm registry (an optional package of tests/clients/package.json)")
        return
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with Desk() as desk:
        stdio = ["mcp", "--toolset", "bridge", "--agent", "code", "--home", str(desk.home)]
        claude(desk, "mcp", "add", "desk", "--", BINARY, *stdio)
        claude(desk, "mcp", "add", "--transport", "http", "web", f"{desk.url}/mcp/bridge?agent=code")
        _, listed = claude(desk, "mcp", "list")
        for name in ("desk", "web"):
            line = next((line for line in listed.splitlines() if line.startswith(f"{name}:")), listed)
            check("Connected" in line, f"mcp list says Connected: {name}")
        servers = {
            "stdio": {"type": "stdio", "command": BINARY, "args": stdio},
            "http": {"type": "http", "url": f"{desk.url}/mcp/bridge", "headers": {"X-Deskmate-Agent": "code"}},
        }
        for way, server in servers.items():
            ask(desk, model.server_port, server, "send_message", {"to": "cowork", "content": f"Hello over {way}"})
            got = desk.call("bridge_read_messages", "cowork", mark_read=True)["messages"]
            check([(m["sender"], m["content"]) for m in got] == [("code", f"Hello over {way}")], f"{way}: what the model sends is on the desk, from code")
            desk.call("bridge_send_message", "cowork", to="code", content=f"Good morning over {way}")
            said = ask(desk, model.server_port, server, "read_messages", {"mark_read": True})
            check(f"Good morning over {way}" in said, f"{way}: the model reads what was sent to it" if "Good morning" in said else said)
            check(len([t for t in Model.offered if t.startswith("mcp__desk__")]) == 23, f"{way}: all tools are offered to the model")
    with Desk() as desk:
        desk.claim()
        token = desk.register("code")
        stdio = [BINARY, "mcp", "--toolset", "bridge", "--home", str(desk.home)]
        claude(desk, "mcp", "add", "named", "--", *stdio, "--agent", "code")
        claude(desk, "mcp", "add", "desk", "-e", f"DESKMATE_TOKEN={token}", "--", *stdio)
        claude(desk, "mcp", "add", "--transport", "http", "web", f"{desk.url}/mcp/bridge", "-H", f"Authorization: Bearer {token}")
        _, listed = claude(desk, "mcp", "list")
        for name, connects in (("named", False), ("desk", True), ("web", True)):
            line = next((line for line in listed.splitlines() if line.startswith(f"{name}:")), listed)
            check(("✔ Connected" in line) == connects, f"closed desk: {name} {'connects with its token' if connects else 'is refused without a token'}")
        server = {"type": "stdio", "command": stdio[0], "args": stdio[1:], "env": {"DESKMATE_TOKEN": token}}
        ask(desk, model.server_port, server, "send_message", {"to": "code", "content": "to myself"})
        got = json.loads(desk.cli("call", "bridge_read_messages", "--json", token=token))["messages"]
        check([(m["sender"], m["verified"]) for m in got] == [("code", True)], "closed desk: what the model sends is proved to be from code")
        narrowed(desk, model.server_port, token)
    model.shutdown()


if __name__ == "__main__":
    sys.exit(main())
