"""The MCP Inspector's command line: portable schemas, and calls in both eras, over stdio and over HTTP."""

import json
import os
import subprocess

from desk import BINARY, Desk, check

LAUNCHER = os.path.join(os.environ["CLIENTS"], "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")


def inspect(desk, *args):
    command = [os.environ["NODE"], LAUNCHER, "--cli", *args]
    return subprocess.run(command, env=desk.env(), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def main():
    with Desk() as desk:
        stdio = [BINARY, "mcp", "--toolset", "bridge", "--agent", "code", "--home", str(desk.home)]
        http = [f"{desk.url}/mcp/bridge", "--transport", "http", "--header", "X-Deskmate-Agent: code"]
        everything = [f"{desk.url}/mcp", "--transport", "http", "--header", "X-Deskmate-Agent: code"]
        for name, server in (("stdio", stdio), ("http", http), ("http, every toolset", everything)):
            for era in ("legacy", "modern"):
                done = inspect(desk, *server, "--protocol-era", era, "--method", "tools/list", "--strict")
                check(done.returncode == 0, f"{name}, {era}: the schemas are portable\n{done.stdout[-600:] if done.returncode else ''}{done.stderr}".strip())
        for name, server in (("stdio", stdio), ("http", http)):
            for era in ("legacy", "modern"):
                text = f"from the inspector over {name}, {era}"
                sending = ["--tool-name", "send_message", "--tool-args-json", json.dumps({"to": "cowork", "content": text})]
                done = inspect(desk, *server, "--protocol-era", era, "--method", "tools/call", *sending, "--format", "json")
                check(done.returncode == 0 and "message_id" in done.stdout, f"{name}, {era}: a tool is called {done.stderr}".strip())
                got = desk.call("bridge_read_messages", "cowork", mark_read=True)["messages"]
                check([(m["sender"], m["content"]) for m in got] == [("code", text)], f"{name}, {era}: the message is there")
                done = inspect(desk, *server, "--protocol-era", era, "--method", "tools/call", "--tool-name", "send_message", "--tool-args-json", "{}")
                check(done.returncode != 0, f"{name}, {era}: a call without arguments fails with exit code {done.returncode}")


if __name__ == "__main__":
    main()
