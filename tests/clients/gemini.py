"""Gemini CLI, which still opens with the older handshake: `mcp list` connects over stdio and over HTTP."""

import os
import re
import subprocess
from pathlib import Path

from desk import BINARY, Desk, check

MODULES = Path(os.environ["CLIENTS"], "node_modules/@google/gemini-cli")


def gemini(desk, *args, **more):
    work = desk.root / "work"
    work.mkdir(exist_ok=True)
    env = desk.env(TERM="dumb", NO_COLOR="1", GEMINI_CLI_TRUST_WORKSPACE="true", GEMINI_CLI_NO_RELAUNCH="true", **more)
    command = [os.environ["NODE"], str(MODULES / "bundle/gemini.js"), *args]
    done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)


def main():
    if not MODULES.exists():
        print("SKIPPED: @google/gemini-cli could not be installed from the npm registry (an optional package of tests/clients/package.json)")
        return
    with Desk() as desk:
        gemini(desk, "mcp", "add", "-s", "user", "desk", BINARY, "--", "mcp", "--toolset", "bridge", "--agent", "code", "--home", str(desk.home))
        gemini(desk, "mcp", "add", "-s", "user", "-t", "http", "web", f"{desk.url}/mcp/bridge?agent=code")
        listed = gemini(desk, "mcp", "list")
        for name in ("desk", "web"):
            line = next((line for line in listed.splitlines() if f" {name}:" in line), listed)
            check("Connected" in line and "Disconnected" not in line, f"mcp list says Connected: {line.strip() if len(line) < 400 else name}")


if __name__ == "__main__":
    main()
