"""What `deskmate connect` and `scripts/bundle` write, judged by the programs that read it: Claude Code, Gemini CLI and mcpb."""

import hashlib
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import claude_code
import gemini
from desk import BINARY, PASSPHRASE, Desk, check

MCPB = Path(os.environ["CLIENTS"], "node_modules/@anthropic-ai/mcpb/dist/cli/cli.js")
ROOT = Path(__file__).resolve().parent.parent.parent


def claude(desk, *args, **env):
    _, said = claude_code.claude(desk, *args, **env)
    return said


def line_of(listed, name):
    return next((line for line in listed.splitlines() if re.search(rf"(^|\s){re.escape(name)}:? ", line) or line.startswith(f"{name}:")), listed)


def doctor(desk, **env):
    """What doctor says about the clients, and how it ends."""
    done = subprocess.run([BINARY, "doctor", "--json", "--home", str(desk.home)], env=desk.env(**env), cwd=desk.root, capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(done.stdout)["clients"]


def claude_code_open():
    with Desk() as desk:
        desk.cli("connect", "claude-code")
        desk.cli("connect", "claude-code", "--url", desk.url, "--toolset", "bridge", "--name", "web")
        listed = claude(desk, "mcp", "list")
        for name in ("desk", "web"):
            check("✔ Connected" in line_of(listed, name), f"claude mcp list says Connected after connect: {name}" if "✔" in listed else listed)
        check("nothing was changed" in desk.cli("connect", "claude-code"), "Claude Code has written its file meanwhile, and is still connected")
        code, clients = doctor(desk)
        check(code == 0 and [one["state"] for one in clients] == ["ok", "ok"], f"doctor connects both ways too: {clients}")
        before = json.loads((desk.root / ".claude.json").read_text())
        desk.cli("disconnect", "claude-code")
        desk.cli("disconnect", "claude-code", "--name", "web")
        after = json.loads((desk.root / ".claude.json").read_text())
        check(not after.pop("mcpServers") and before.pop("mcpServers") and after == before, "disconnect leaves everything else in Claude Code's file")
        check("Connected" not in claude(desk, "mcp", "list"), "and Claude Code lists it no more")
        desk.cli("connect", "claude-code", "--scope", "project", "--dir", str(work(desk)))
        check(re.search(r"desk: .*(Pending|Connected)", claude(desk, "mcp", "list")), "a project's entry is found, and waits for approval as every such entry does")


def work(desk):
    folder = desk.root / "work"
    folder.mkdir(exist_ok=True)
    return folder


def claude_code_closed():
    with Desk() as desk:
        desk.claim()
        token = desk.register("code")
        refused = subprocess.run([BINARY, "connect", "claude-code", "--home", str(desk.home)], env=desk.env(), capture_output=True, text=True, timeout=60)
        check(refused.returncode == 3 and "deskmate agent add code" in refused.stderr, "a closed desk wants a token, and says how to get one")
        desk.cli("connect", "claude-code", token=token)
        check((desk.root / ".claude.json").stat().st_mode & 0o077 == 0, "the file with the token is its owner's alone")
        kept = desk.root / "code.token"
        kept.touch(0o600)
        kept.write_text(token + "\n")
        desk.cli("connect", "claude-code", "--name", "filed", "--token-file", str(kept))
        desk.cli("connect", "claude-code", "--name", "web", "--url", desk.url, token=token)
        listed = claude(desk, "mcp", "list")
        for name in ("desk", "filed", "web"):
            check("✔ Connected" in line_of(listed, name), f"closed desk: {name} connects" if "✔" in listed else listed)
        desk.cli("connect", "claude-code", "--scope", "project", "--dir", str(work(desk)), token=token)
        check(token not in (work(desk) / ".mcp.json").read_text(), "a project's file holds no token")
        code, clients = doctor(desk)
        check(code == 0, f"doctor connects with the tokens that the entries name: {clients}")
        desk.cli("agent", "rotate", "code", "--grace-minutes", "0", "--passphrase-stdin", stdin=PASSPHRASE + "\n")
        code, clients = doctor(desk)
        check(code == 1 and all(one["state"] == "problem" and one["fix"] for one in clients), f"and says what to do when they are good no more: {clients}")


def plugin():
    with Desk() as desk:
        for more in ([], ["--hooks"]):
            desk.cli("connect", "claude-code", "--scope", "plugin", "--dir", str(desk.root / "plugin"), *more)
            for part in ("", "deskmate"):
                said = claude(desk, "plugin", "validate", str(desk.root / "plugin" / part))
                check("Validation passed" in said and "with warnings" not in said, f"claude plugin validate: {part or 'marketplace'} {' '.join(more)}" if "passed" in said and "with warnings" not in said else said)
        desk.cli("connect", "claude-code", "--scope", "plugin", "--dir", str(desk.root / "plugin"))
        said = claude(desk, "plugin", "marketplace", "add", str(desk.root / "plugin"))
        said += claude(desk, "plugin", "install", "deskmate@deskmate")
        listed = claude(desk, "mcp", "list")
        check("✔ Connected" in line_of(listed, "plugin:deskmate:desk"), "the installed plugin connects" if "✔" in listed else said + listed)


def gemini_cli():
    with Desk() as desk:
        desk.cli("connect", "gemini")
        desk.cli("connect", "gemini", "--url", desk.url, "--name", "web")
        listed = gemini.gemini(desk, "mcp", "list")
        for name in ("desk", "web"):
            line = line_of(listed, name)
            check("Connected" in line and "Disconnected" not in line, f"gemini mcp list says Connected after connect: {name}" if len(line) < 400 else listed)
    with Desk() as desk:
        desk.claim()
        token = desk.register("gemini")
        desk.cli("connect", "gemini", "--scope", "project", "--dir", str(work(desk)), token=token)
        check(token not in (work(desk) / ".gemini/settings.json").read_text(), "gemini: a project's file holds no token")
        line = line_of(gemini.gemini(desk, "mcp", "list", DESKMATE_TOKEN=token), "desk")
        check("Connected" in line and "Disconnected" not in line, f"gemini takes the token from the environment: {line}")


def mcpb(*args):
    return subprocess.run([os.environ["NODE"], str(MCPB), *args], capture_output=True, text=True, timeout=120, check=True).stdout


# What every client is shown and people alone may do: a bundle does not advertise it.
DECIDING = {"cowork_approve", "cowork_override", "cowork_bulk_approve", "cowork_bulk_reject", "cowork_resolve_handoff"}


def listed(entry, desk):
    """The names of the tools that a program offers, asked for as a client does."""
    said = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    environment = {**os.environ, **entry["env"], "HOME": str(desk.root)}
    program = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        for message in said:
            program.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            program.stdin.flush()
        answers = (json.loads(line) for line in program.stdout)
        answer = next(answer for answer in answers if answer.get("id") == 2)
        return sorted(tool["name"] for tool in answer["result"]["tools"])
    finally:
        program.stdin.close()
        program.wait(timeout=60)


def bundle():
    with Desk() as desk:
        into = desk.root / "bundle"
        at = "https://example.org/releases"
        subprocess.run([ROOT / "scripts/bundle", BINARY, "--into", into, "--name", "org.example/deskmate", "--at", at], check=True, timeout=300, stdout=subprocess.DEVNULL)
        (made,) = into.glob("*.mcpb")
        unpacked = desk.root / "unpacked"
        mcpb("unpack", str(made), str(unpacked))
        check("passes" in mcpb("validate", str(unpacked / "manifest.json")), "mcpb validate passes")
        manifest = json.loads((unpacked / "manifest.json").read_text())
        config = manifest["server"]["mcp_config"]
        check("idle" not in json.dumps(config), "the bundle's server never ends when idle")
        with zipfile.ZipFile(made) as package:
            check(package.getinfo("server/deskmate").external_attr >> 16 & 0o111, "its program can be run")
        fill = lambda text: text.replace("${__dirname}", str(unpacked)).replace("${user_config.agent}", "cowork").replace("${user_config.token}", "").replace("${user_config.home}", str(desk.home))
        entry = {"command": fill(config["command"]), "args": [fill(word) for word in config["args"]], "env": {name: fill(value) for name, value in config["env"].items()}}
        os.chmod(entry["command"], 0o755)
        named = sorted(tool["name"] for tool in manifest["tools"])
        offered = listed(entry, desk)
        check("cowork_propose" in named and set(named) == set(offered) - DECIDING, f"its manifest lists exactly the tools that its program has for agents: {offered}")
        settings = desk.root / ".config/Claude/claude_desktop_config.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"mcpServers": {"bundle": entry}}))
        code, clients = doctor(desk)
        check(code == 0 and [one["state"] for one in clients] == ["ok"], f"the bundle's program connects as its manifest says: {clients}")
        server = json.loads((into / "server.json").read_text())
        (package,) = server["packages"]
        check(re.fullmatch(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+", server["name"]) and 0 < len(server["description"]) <= 100 and server["version"] == manifest["version"],
              "server.json has a name, a short description and the version")
        check(package["fileSha256"] == hashlib.sha256(made.read_bytes()).hexdigest() and package["identifier"] == f"{at}/{made.name}" and "mcp" in package["identifier"],
              "its package is this bundle, by address and digest")
        check(package["registryType"] == "mcpb" and package["transport"] == {"type": "stdio"} and package["environmentVariables"][0]["isSecret"], "as the registry wants it")


def main():
    if claude_code.CLAUDE.exists():
        claude_code_open()
        claude_code_closed()
        plugin()
    else:
        print("SKIPPED: @anthropic-ai/claude-code-linux-x64 could not be installed from the npm registry")
    if gemini.MODULES.exists():
        gemini_cli()
    else:
        print("SKIPPED: @google/gemini-cli could not be installed from the npm registry")
    bundle()


if __name__ == "__main__":
    main()
