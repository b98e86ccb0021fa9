"""The real Claude Code with the desk's hooks: its own tools run, do not run, wait for a person, and never run unseen."""

import json
import sys
import threading
import time
import urllib.request
from http.server import ThreadingHTTPServer

import claude_code
from claude_code import CLAUDE, Model
from desk import BINARY, PASSPHRASE, Desk, check


def run(desk, port, tool, arguments, settings=None, *more, **variables):
    """One run in which the model wants one of the client's own tools; answers what the tool, or the client for it, said."""
    Model.wanted, Model.results, Model.offered = (tool, arguments), [], []
    flags = ["--settings", json.dumps(settings)] if settings else []
    code, said = claude_code.claude(desk, "-p", "go", "--output-format", "json", *flags, *more, ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}",
                                    ANTHROPIC_API_KEY="dummy", ENABLE_TOOL_SEARCH="false", **variables)
    assert Model.results, f"Claude Code ended with {code}, offered {Model.offered}: {said[-2000:]}"
    content = Model.results[0]["content"]
    text = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    return text, bool(Model.results[0].get("is_error"))


def approve_soon(desk):
    """Approves what waits first, as the owner, while the client is held."""
    def decide():
        for _ in range(100):
            listed = json.loads(desk.cli("inbox", "list", "--json", "--passphrase-stdin", stdin=PASSPHRASE + "\n"))["requests"]
            if listed:
                desk.cli("inbox", "approve", listed[0]["request"], "--passphrase-stdin", stdin=PASSPHRASE + "\n")
                return
            time.sleep(0.1)
    thread = threading.Thread(target=decide)
    thread.start()
    return thread


def states(desk, session):
    """How every request stands, the newest first."""
    request = urllib.request.Request(f"{desk.url}/api/desk_request_list?view=all", headers={"authorization": f"Bearer {session}"})
    with urllib.request.urlopen(request) as answer:
        return [one["state"] for one in json.load(answer)["requests"]]


def main():
    if not CLAUDE.exists():
        print("SKIPPED: @anthropic-ai/claude-code-linux-x64 could not be installed from the npm registry (an optional package of tests/clients/package.json)")
        return
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    port = model.server_port
    with Desk() as desk:
        session = desk.claim()["session"]
        token = desk.register("code")
        held = desk.root / "token"
        held.write_text(token)
        work = desk.root / "work"
        work.mkdir()
        printed = desk.cli("hook", "print-config", "--client", "claude-code", "--token-file", str(held))
        hooks = json.loads(printed)
        made = work / "made"
        said, failed = run(desk, port, "Bash", {"command": "echo hello from the shell"}, hooks)
        check("hello from the shell" in said and not failed, "a look passes without a prompt")
        said, failed = run(desk, port, "Bash", {"command": "rm -rf /"}, hooks)
        check(failed and "must not be done" in said, "what takes away everything is refused with its reason" if failed else said)
        waits = approve_soon(desk)
        said, failed = run(desk, port, "Bash", {"command": "touch made"}, hooks)
        waits.join()
        check(made.exists() and not failed, "a held call runs once a person has approved it" if made.exists() else said)
        check(states(desk, session) == ["done"], "and what came of it closes the request")
        json.loads(desk.cli("call", "bridge_send_message", "--json", "--input", json.dumps({"to": "code", "content": "psst"}), token=token))
        Model.heard = []
        run(desk, port, "Bash", {"command": "echo x"}, hooks)
        check(any("psst" in body and "data to judge" in body for body in Model.heard), "an unread message is told to the model as data")
        http = json.loads(desk.cli("hook", "print-config", "--form", "http"))
        said, failed = run(desk, port, "Bash", {"command": "echo over http"}, http, DESKMATE_TOKEN=token)
        check("over http" in said and not failed, "the HTTP form allows")
        said, failed = run(desk, port, "Bash", {"command": "rm -rf ~"}, http, DESKMATE_TOKEN=token)
        check(failed and "must not be done" in said, "the HTTP form refuses")
        config = desk.root / "gate.json"
        config.write_text(json.dumps({"mcpServers": {"gate": {"type": "stdio", "command": BINARY, "args": ["mcp", "--toolset", "hook", "--home", str(desk.home)],
                                                               "env": {"DESKMATE_TOKEN": token}}}}))
        tool = json.loads(desk.cli("hook", "print-config", "--form", "mcp-tool", "--server", "gate"))
        gate = ["--mcp-config", str(config), "--strict-mcp-config"]
        said, failed = run(desk, port, "Bash", {"command": "echo by a tool"}, tool, *gate)
        check("by a tool" in said and not failed, "the form as an MCP tool allows" if not failed else said)
        said, failed = run(desk, port, "Bash", {"command": "rm -rf ~"}, tool, *gate)
        check(failed and "must not be done" in said, "the form as an MCP tool refuses" if failed else said)
        asks = [*gate, "--permission-prompt-tool", "mcp__gate__hook_permission"]
        (work / "asked").unlink(missing_ok=True)
        waits = approve_soon(desk)
        said, failed = run(desk, port, "Bash", {"command": "touch asked"}, None, *asks)
        waits.join()
        check((work / "asked").exists() and not failed, "the tool that is asked in the place of a prompt holds and allows" if not failed else said)
        said, failed = run(desk, port, "Bash", {"command": "rm -rf /"}, None, *asks)
        check(failed and "must not be done" in said, "and refuses")
    # The desk is gone: what would have passed does not run.
    with Desk() as desk:
        desk.process.terminate()
        desk.process.wait(10)
        (desk.root / "work").mkdir()
        hooks = json.loads(desk.cli("hook", "print-config", "--client", "claude-code"))
        said, failed = run(desk, port, "Bash", {"command": "touch unseen"}, hooks)
        check(failed and not (desk.root / "work" / "unseen").exists(), "without the desk nothing runs" if failed else said)
        http = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "http", "url": f"{desk.url}/hook", "timeout": 5, "onFailure": "block"}]}]}}
        said, failed = run(desk, port, "Bash", {"command": "touch unseen"}, http, "--allowedTools", "Bash")
        check(failed and not (desk.root / "work" / "unseen").exists(), "nor over HTTP" if failed else said)
    model.shutdown()


if __name__ == "__main__":
    sys.exit(main())
