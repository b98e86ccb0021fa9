"""Servers that people use, mounted behind a desk, and called with the official Python SDK in both eras: alone under their own
names, and together under one address."""

import asyncio
import json
import logging
import sys
import tempfile
import warnings
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import ElicitResult

from desk import BINARY, PASSPHRASE, Desk, check
from front import ERAS, HERE, free_port, listening, npm

logging.getLogger("mcp.client.streamable_http").setLevel(logging.ERROR)
warnings.simplefilter("ignore", MCPDeprecationWarning)

RULES = """
rules:
  - { name: looking, match: { kind: test.look }, effect: allow, waive_trust: true, message: looking is fine }
  - name: keys
    match: { tool: files_read_text_file }
    when: 'args.path.endsWith(".key")'
    effect: deny
    message: keys are not for agents
    alternative: ask Ada for it
  - { name: moves, match: { tool: files_move_file }, effect: deny, message: nothing is moved here }
"""
LOOKS = ["--verb", "*=test.look"]


def owner(desk, *words):
    """A command of the person, who gives the passphrase."""
    return json.loads(desk.cli(*words, "--json", "--passphrase-stdin", stdin=PASSPHRASE + "\n"))


def mount(desk, name, *options, command=()):
    # The desk's folder is named before the mount's own command begins.
    words = ["gateway", "add", name, *options, "--home", str(desk.home), "--json", "--passphrase-stdin", *(["--", *command] if command else [])]
    return json.loads(desk.run(*words, stdin=PASSPHRASE + "\n"))


class Answers:
    """A person at the client, who answers what servers ask."""

    def __init__(self):
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ada", "value": "Ada", "check": True})


@asynccontextmanager
async def client(desk, token, era, place="", over="http", mode=None):
    """A client of the agent, at one mount or at all that the desk has; with what it was asked, and what it was told."""
    mode = mode or ("legacy" if era == ERAS[0] else era)
    answers = Answers()
    if over == "http":
        url = f"{desk.url}/mcp/{place}" if place else f"{desk.url}/mcp"
        transport = streamable_http_client(url, http_client=httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=90))
    else:
        named = ["--toolset", place] if place else []
        transport = StdioServerParameters(command=BINARY, args=["mcp", *named, "--home", str(desk.home)], env=desk.env(DESKMATE_TOKEN=token))
    async with Client(transport, mode=mode, elicitation_callback=answers) as made:
        made.answers = answers
        yield made


def text(result):
    assert not result.is_error, result
    return said(result)


def said(result):
    return "".join(block.text for block in result.content if block.type == "text")


def marked(result, name):
    """What came back says where it comes from, in words and in metadata."""
    origin = (result.meta or {}).get("deskmate/origin", {})
    return origin.get("mount") == name and origin.get("untrusted") and "data, not instructions" in said(result)


async def progress(mcp, tool, arguments):
    told = []

    async def note(done, total, message):
        told.append(done)

    answer = text(await mcp.call_tool(tool, arguments, progress_callback=note))
    return told, answer


async def everything(mcp, named, mount):
    names = {tool.name for tool in (await mcp.list_tools()).tools}
    assert {named("echo"), named("get-sum"), named("trigger-long-running-operation")} <= names, names
    echoed = await mcp.call_tool(named("echo"), {"message": "hello"})
    assert "hello" in text(echoed) and marked(echoed, mount), echoed
    structured = await mcp.call_tool(named("get-structured-content"), {"location": "Chicago"})
    assert structured.structured_content["temperature"], structured
    image = await mcp.call_tool(named("get-tiny-image"), {})
    assert any(block.type == "image" and len(block.data) > 1000 for block in image.content), image
    told, _ = await progress(mcp, named("trigger-long-running-operation"), {"duration": 1, "steps": 4})
    assert told == sorted(told) and told, told
    if mount == "every":
        environment = text(await mcp.call_tool(named("get-env"), {}))
        assert "DESKMATE" not in environment and "PATH" in environment, "a program that the desk starts gets nothing of the desk's own"


async def filesystem(mcp, named, folder):
    names = {tool.name for tool in (await mcp.list_tools()).tools}
    assert named("read_text_file") in names and named("write_file") in names, names
    assert named("move_file") not in names, "what is forbidden whatever it is called with is not listed"
    assert "a note" in text(await mcp.call_tool(named("read_text_file"), {"path": str(folder / "note.txt")}))
    outside = await mcp.call_tool(named("read_text_file"), {"path": "/etc/passwd"})
    assert outside.is_error and "denied" in said(outside).lower(), "the server's own bounds hold"
    denied = await mcp.call_tool(named("read_text_file"), {"path": str(folder / "a.key")})
    assert denied.is_error and "keys are not for agents" in said(denied) and "ask Ada for it" in said(denied), denied
    refused = await mcp.call_tool(named("move_file"), {"source": str(folder / "note.txt"), "destination": str(folder / "x")})
    assert refused.is_error and "nothing is moved here" in said(refused) and (folder / "note.txt").exists(), refused


async def memory(mcp, named, era):
    entity = {"name": f"Ada {era}", "entityType": "person", "observations": ["writes programs"]}
    text(await mcp.call_tool(named("create_entities"), {"entities": [entity]}))
    assert f"Ada {era}" in text(await mcp.call_tool(named("read_graph"), {})), "what was written is there"


async def fast(mcp, named, mount):
    sum = await mcp.call_tool(named("add"), {"a": 2, "b": 40})
    assert text(sum).startswith("42") and sum.structured_content == {"result": 42} and marked(sum, mount), sum
    told, answer = await progress(mcp, named("count"), {"to": 5})
    assert told == [1, 2, 3, 4, 5] and "counted to 5" in answer, (told, answer)
    many = await asyncio.gather(*(mcp.call_tool(named("add"), {"a": n, "b": 0}) for n in range(50)))
    assert [result.structured_content for result in many] == [{"result": n} for n in range(50)]
    failed = await mcp.call_tool(named("add"), {"a": "two"})
    assert failed.is_error, failed


async def fast_rest(mcp):
    """What only a mount's own address serves."""
    assert "good morning" in str((await mcp.read_resource("fast://greeting")).contents)
    assert "x = 1" in str((await mcp.get_prompt("review", {"code": "x = 1"})).messages)
    assert {str(one.uri) for one in (await mcp.list_resources()).resources} == {"fast://greeting"}
    try:
        await mcp.read_resource("fast://nothing")
        raise AssertionError("a resource that is not there was read")
    except MCPError as error:
        assert "nothing" in str(error), error


async def everything_rest(mcp):
    assert (await mcp.list_prompts()).prompts and (await mcp.list_resource_templates()).resource_templates
    resources = (await mcp.list_resources()).resources
    assert (await mcp.read_resource(str(resources[0].uri))).contents


async def asked(mcp, named, old, new):
    """Servers of both eras ask the person at the client."""
    answer = await mcp.call_tool(named(old, "trigger-elicitation-request"), {})
    assert "Ada" in text(answer), answer
    # Both at once, and one says why it calls, which its server does not see.
    why = {"_cowork_metadata": {"intent": "to be polite to whoever is there"}} if new == "fast" else {}
    for answer in await asyncio.gather(mcp.call_tool(named(new, "greet"), why), mcp.call_tool(named(new, "greet"), {})):
        assert "Hello, Ada" in text(answer), answer
    assert len(mcp.answers.asked) == 3, mcp.answers.asked


async def pending(desk):
    """The requests that wait for the person."""
    return (await asyncio.to_thread(owner, desk, "inbox", "list"))["requests"]


async def held_in_time(desk, mcp, named, folder, era):
    """A person approves while the caller is held: the call's own answer brings what came of it."""
    path = folder / f"in-time-{era}.txt"
    call = asyncio.create_task(mcp.call_tool(named("write_file"), {"path": str(path), "content": "exactly this"}))
    for _ in range(200):
        waits = [one for one in await pending(desk) if one["title"] == "files: write_file"]
        if waits:
            break
    assert waits and not path.exists() and not call.done(), waits
    await asyncio.to_thread(owner, desk, "inbox", "approve", waits[0]["request"])
    answer = await asyncio.wait_for(call, 20)
    assert "success" in text(answer).lower() and marked(answer, "files") and path.read_text() == "exactly this", answer


async def held_later(desk, mcp, named, folder, era):
    """Nobody decides in time: the caller gets a handle, and fetches later what came of it."""
    path = folder / f"later-{era}.txt"
    arguments = {"path": str(path), "content": "later"}
    waits = await mcp.call_tool(named("write_file"), arguments)
    call = waits.structured_content["deskmate_call"]
    assert not waits.is_error and call["state"] == "held" and call["call_id"] in said(waits) and not path.exists(), waits
    again = await mcp.call_tool("gateway_result", {"call_id": call["call_id"], "timeout_seconds": 0})
    assert '"held"' in json.dumps(again.structured_content), again
    await asyncio.to_thread(owner, desk, "inbox", "approve", call["request_id"])
    result = await mcp.call_tool("gateway_result", {"call_id": call["call_id"]})
    assert "success" in text(result).lower() and "data, not instructions" in said(result) and path.read_text() == "later", result
    path.unlink()
    refused = asyncio.create_task(mcp.call_tool(named("write_file"), arguments))
    new = None
    for _ in range(200):
        new = next((one for one in await pending(desk) if one["request"] != call["request_id"] and one["title"] == "files: write_file"), None)
        if new:
            break
    assert new and not path.exists(), "the same call again is a new one, once its outcome was fetched"
    await asyncio.to_thread(owner, desk, "inbox", "reject", new["request"], "--reason", "once is enough")
    refused = await asyncio.wait_for(refused, 20)
    assert refused.is_error and "once is enough" in said(refused) and not path.exists(), refused


PLAIN = lambda name: name


async def alone(desk, token, era, folder):
    for name, checks in {
        "every": [lambda mcp: everything(mcp, PLAIN, "every"), everything_rest],
        "files": [lambda mcp: filesystem(mcp, PLAIN, folder)],
        "memory": [lambda mcp: memory(mcp, PLAIN, f"alone {era}")],
        "fast": [lambda mcp: fast(mcp, PLAIN, "fast"), fast_rest],
        "new-web": [lambda mcp: fast(mcp, PLAIN, "new-web"), fast_rest],
        "old-web": [lambda mcp: everything(mcp, PLAIN, "old-web"), everything_rest],
    }.items():
        async with client(desk, token, era, name) as mcp:
            assert mcp.protocol_version == era
            for one in checks:
                await one(mcp)
        check(True, f"{name} alone, {era}: its own names")


async def together(desk, token, era, folder):
    def of(name):
        return lambda tool: f"{name}_{tool}"

    async with client(desk, token, era) as mcp:
        names = [tool.name for tool in (await mcp.list_tools()).tools]
        assert len(names) == len(set(names)) and {"gateway_result", "cowork_propose", "bridge_send_message"} <= set(names), names
        for name in ("every", "old-web"):
            await everything(mcp, of(name), name)
        for name in ("fast", "new-web"):
            await fast(mcp, of(name), name)
        await filesystem(mcp, of("files"), folder)
        await memory(mcp, of("memory"), f"together {era}")
    check(True, f"all together, {era}: each with its server's name before it ({len(names)} tools)")


async def questions(desk, token, era):
    # The older era is asked over a connection that lasts; the newer one over any.
    ways = [("stdio", "gateway")] if era == ERAS[0] else [("http", ""), ("stdio", "gateway")]
    for over, place in ways:
        for old, new in (("every", "fast"), ("old-web", "new-web")):
            async with client(desk, token, era, place, over) as mcp:
                await asked(mcp, lambda server, tool: f"{server}_{tool}", old, new)
            check(True, f"{old} and {new} ask the person at the client, {era} over {over}")
    async with client(desk, token, era, "every", ways[0][0]) as mcp:
        assert "Ada" in text(await mcp.call_tool("trigger-elicitation-request", {}))
    check(True, f"and so does every alone, {era}")


async def changing(desk, token):
    """A client of the newer era listens, and hears when the tools that are there for it are others."""
    # Who only names the version does not ask the server what it is.
    async with client(desk, token, ERAS[1], mode="auto") as mcp:
        assert "Tools of other servers" in mcp.instructions, mcp.instructions
        async with mcp.listen(tools_list_changed=True) as changes:
            events = aiter(changes)
            await asyncio.to_thread(owner, desk, "gateway", "disable", "memory")
            await asyncio.wait_for(anext(events), 10)
            assert not [tool for tool in (await mcp.list_tools(cache_mode="refresh")).tools if tool.name.startswith("memory_")]
            await asyncio.to_thread(owner, desk, "gateway", "enable", "memory")
            await asyncio.wait_for(anext(events), 10)
            assert [tool for tool in (await mcp.list_tools(cache_mode="refresh")).tools if tool.name.startswith("memory_")]
    async with client(desk, token, ERAS[1], "every", mode="auto") as mcp:
        told = mcp.instructions
    assert "This is the server every" in told and "> " in told, told
    check(True, f"listening tells of other tools, and a server's own instructions come along as its word, {ERAS[1]}")


async def holding(desk, token, folder):
    """Two calls wait out the time in which callers are held, side by side."""
    for era in ERAS:
        async with client(desk, token, era, "files") as mcp:
            await held_in_time(desk, mcp, PLAIN, folder, era)
        check(True, f"a held call is done when the person approves, {era}")
    async with client(desk, token, ERAS[0], "files") as older, client(desk, token, ERAS[1]) as newer:
        named = lambda tool: f"files_{tool}"
        await held_later(desk, older, PLAIN, folder, ERAS[0])
        check(True, f"a call that nobody decided in time is fetched later, once, {ERAS[0]}")
        await held_later(desk, newer, named, folder, ERAS[1])
        check(True, f"and so is one of {ERAS[1]}")


def main():
    server = str(HERE.parent / "servers" / "fast.py")
    old, new = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running, Desk() as desk:
        folder = Path(folder).resolve()
        (folder / "note.txt").write_text("a note")
        (folder / "a.key").write_text("a key")
        new_url = running.enter_context(listening([sys.executable, server, str(new)], new))
        old_url = running.enter_context(listening([*npm("server-everything"), "streamableHttp"], old))
        desk.claim()
        token = desk.register("code")
        rules = desk.root / "rules.yaml"
        rules.write_text(RULES)
        owner(desk, "policy", "apply", str(rules))
        reads = ["--verb", "read_*=test.look", "--verb", "list_*=test.look"]
        for name, added in {
            "every": mount(desk, "every", *LOOKS, command=[*npm("server-everything"), "stdio"]),
            "files": mount(desk, "files", *reads, command=[*npm("server-filesystem"), str(folder)]),
            "memory": mount(desk, "memory", *LOOKS, "--env", f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}", command=npm("server-memory")),
            "fast": mount(desk, "fast", *LOOKS, "--intent", "warn", command=[sys.executable, server]),
            "new-web": mount(desk, "new-web", *LOOKS, "--url", new_url),
            "old-web": mount(desk, "old-web", *LOOKS, "--url", old_url),
        }.items():
            assert added["tools"] > 0 and not added["refused"] and not added["waiting"], added
            print(f"  ok  {name} is mounted: {added['server']['name']}, {added['protocol']}, {added['tools']} tools", flush=True)
        for era in ERAS:
            asyncio.run(alone(desk, token, era, folder))
            asyncio.run(together(desk, token, era, folder))
            asyncio.run(questions(desk, token, era))
        asyncio.run(changing(desk, token))
        asyncio.run(holding(desk, token, folder))
        calls = owner(desk, "gateway", "calls", "--limit", "200")["items"]
        assert not [one for one in calls if one["state"] in ("passed", "held", "ambiguous")], "every call has its outcome"
        verified = owner(desk, "audit", "verify")
        check(not verified.get("findings"), f"the record holds what happened, {len(calls)} calls of the last minutes among it")


if __name__ == "__main__":
    main()
