"""The official Python SDK: both eras of the protocol, over stdio and over HTTP, against the bridge; and as a client that lends its model."""

import asyncio
import json
import logging
import time
import warnings
from contextlib import asynccontextmanager

import httpx2
import jsonschema
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import CreateMessageResult, TextContent

from desk import BINARY, Desk, check

LEGACY, MODERN = "2025-11-25", "2026-07-28"
MESSAGES = "deskmate://messages"
# The answer to DELETE of a session that does not exist is logged as a warning; it is right.
logging.getLogger("mcp.client.streamable_http").setLevel(logging.ERROR)
# The older era is what half of the checks are about.
warnings.simplefilter("ignore", MCPDeprecationWarning)


def stdio(desk, agent, token=None, toolset="bridge"):
    env = desk.env(DESKMATE_TOKEN=token) if token else desk.env()
    name = ["--agent", agent] if agent else []
    return StdioServerParameters(command=BINARY, args=["mcp", "--toolset", toolset, *name, "--home", str(desk.home)], env=env)


def http(desk, agent, token=None, toolset="bridge"):
    headers = {"x-deskmate-agent": agent} if agent else {}
    if token:
        headers["authorization"] = f"Bearer {token}"
    return streamable_http_client(f"{desk.url}/mcp/{toolset}", http_client=httpx2.AsyncClient(headers=headers, timeout=60))


def said(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def call(client, tool, **arguments):
    """Calls a tool that must succeed, and checks the answer against the schema that the tool declares."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, f"{tool}: {said(result)}"
    schema = next(t.output_schema for t in (await client.list_tools()).tools if t.name == tool)
    jsonschema.Draft202012Validator(schema).validate(result.structured_content)
    assert json.loads(said(result)) == result.structured_content, f"{tool}: the text is not the structured content"
    return result.structured_content


async def refused(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, f"{tool} should have been refused: {said(result)}"
    return json.loads(said(result))


async def messages_and_tasks(client, other):
    tools = (await client.list_tools()).tools
    check({"send_message", "read_messages", "create_task", "claim_task", "wait_for_messages"} <= {t.name for t in tools}, f"{len(tools)} tools are listed")
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    sent = await call(client, "send_message", to="cowork", content="Grüße ✓\nsecond line")
    got = (await call(other, "read_messages", mark_read=True))["messages"]
    check([(m["message_id"], m["sender"], m["content"]) for m in got] == [(sent["message_id"], "code", "Grüße ✓\nsecond line")], "a message arrives whole, once")
    check((await call(other, "read_messages"))["messages"] == [], "mark_read acknowledged it")
    task = await call(other, "create_task", to="code", title="Write the notes")
    claimed = await call(client, "claim_task", task_id=task["task_id"])
    check(claimed["status"] == "in_progress" and claimed["worker"] == "code", "a task is claimed")
    await call(client, "update_task", task_id=task["task_id"], status="completed", result="done", fence=claimed["lease"]["fence"])
    seen = await call(other, "get_task", task_id=task["task_id"])
    check((seen.get("task") or seen)["result"] == "done", "its giver sees the result")


async def waiting(client, other):
    waiter = asyncio.create_task(call(client, "wait_for_messages", timeout_seconds=20))
    await asyncio.sleep(0.5)
    assert not waiter.done(), "the wait ended without a message"
    started = time.monotonic()
    await call(other, "send_message", to="code", content="wake up")
    got = await asyncio.wait_for(waiter, 5)
    check(got["messages"][0]["content"] == "wake up", f"a wait ends when somebody writes ({(time.monotonic() - started) * 1000:.0f} ms)")
    await call(client, "read_messages", mark_read=True)
    waiter = asyncio.create_task(client.call_tool("wait_for_messages", {"timeout_seconds": 25}))
    await asyncio.sleep(0.5)
    waiter.cancel()
    started = time.monotonic()
    await asyncio.gather(waiter, return_exceptions=True)
    await call(client, "read_messages")
    check(time.monotonic() - started < 5, "a wait can be cancelled, and the connection goes on")


async def resources(client, other, notes):
    listed = {str(r.uri) for r in (await client.list_resources()).resources}
    check(MESSAGES in listed, f"{len(listed)} resources are listed")
    before = json.loads((await client.read_resource(MESSAGES)).contents[0].text)
    check(before["messages"] == [], "a resource is read")
    if client.protocol_version == MODERN:
        async with client.listen(resource_subscriptions=[MESSAGES]) as subscription:
            await call(other, "send_message", to="code", content="news")
            event = await asyncio.wait_for(anext(aiter(subscription)), 5)
        check(str(event.uri) == MESSAGES, "listening tells that a resource changed")
    elif notes is not None:
        await client.session.subscribe_resource(MESSAGES)
        await call(other, "send_message", to="code", content="news")
        note = await asyncio.wait_for(notes.get(), 5)
        check(str(note.params.uri) == MESSAGES, "a subscription tells that a resource changed")
        await client.session.unsubscribe_resource(MESSAGES)
    else:
        try:
            await client.session.subscribe_resource(MESSAGES)
            raise AssertionError("subscribing was accepted where nothing can be sent")
        except MCPError as error:
            check("stdio" in str(error), f"subscribing without a session is refused: {error}")
        await call(other, "send_message", to="code", content="news")
    after = json.loads((await client.read_resource(MESSAGES, cache_mode="refresh")).contents[0].text)
    check([m["content"] for m in after["messages"]] == ["news"], "and reading it again shows how")
    await call(client, "read_messages", mark_read=True)
    try:
        await client.read_resource("deskmate://nothing")
        raise AssertionError("a resource that is not there was read")
    except MCPError as error:
        check("deskmate://nothing" in str(error), f"an unknown resource: {error}")


async def mistakes(client):
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool was called")
    except MCPError as error:
        check(error.code == -32602 and "no_such_tool" in str(error), f"an unknown tool: {error}")
    for arguments, word in [({"content": "x"}, "to"), ({"to": "cowork", "content": 5}, "content"), ({"to": "cowork", "content": "x", "colour": "red"}, "colour")]:
        error = await refused(client, "send_message", **arguments)
        check(error["code"] == "invalid" and word in json.dumps(error), f"{arguments}: {error['message']}")
    error = await refused(client, "get_task", task_id="00000000-0000-7000-8000-000000000000")
    check(error["code"] == "not_found", f"a task that is not there: {error['message']}")


@asynccontextmanager
async def connected(connect, desk, mode, agent, token=None):
    notes = asyncio.Queue()

    async def on_message(message):
        if getattr(message, "method", "") == "notifications/resources/updated":
            await notes.put(message)

    async with Client(connect(desk, agent, token), mode=mode, message_handler=on_message) as client:
        yield client, (notes if connect is stdio else None)


async def open_desk(desk):
    for connect in (stdio, http):
        for mode, version in (("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)):
            print(f"-- {connect.__name__}, {mode}", flush=True)
            async with connected(connect, desk, mode, "code") as (client, notes), connected(connect, desk, mode, "cowork") as (other, _):
                check(client.protocol_version == version, f"speaks {version}")
                await messages_and_tasks(client, other)
                await waiting(client, other)
                await resources(client, other, notes)
                await mistakes(client)


async def lending_a_model(desk):
    """A client that offers sampling is asked what its model makes of a description; what it says is only a suggestion."""
    asked = []

    async def model(context, params):
        asked.append(params)
        text = json.dumps({"name": f"tide-watch-{len(asked)}", "schedule": "0 6 * * mon,thu", "mayStart": True})
        return CreateMessageResult(role="assistant", model="played", content=TextContent(type="text", text=f"```json\n{text}\n```"))

    description = {"description": "Keep an eye on the tide tables and tell me what changed, Mondays and Thursdays at dawn"}
    for connect, mode in ((stdio, "legacy"), (stdio, MODERN), (http, MODERN)):
        print(f"-- sampling, {connect.__name__}, {mode}", flush=True)
        before = len(asked)
        async with Client(connect(desk, "code", toolset="agents"), mode=mode, sampling_callback=model) as client:
            result = await client.call_tool("create_agent", description)
            made = result.structured_content
            check(not result.is_error and len(asked) == before + 1, f"the model is asked once: {said(result) if result.is_error else ''}")
            check(made["name"] == f"tide-watch-{len(asked)}" and made["schedule"]["cron"] == "0 6 * * MON,THU", "what it says is taken where it can be")
            check("may_start" not in made["definition"] and "mayStart" in json.dumps(made["notUnderstood"]), "and left out where it is not its to say")
        check("tide tables" in json.dumps(asked[-1].model_dump(mode="json")), "it is told the description")
    for connect, mode in ((stdio, "legacy"), (http, "legacy"), (http, MODERN)):
        async with Client(connect(desk, "code", toolset="agents"), mode=mode) as client:
            made = (await client.call_tool("create_agent", description)).structured_content
            check("a model" not in json.dumps([made["assumed"], made["notUnderstood"]]), f"{connect.__name__}, {mode}: without sampling nobody is asked")


async def turned_away(connect, desk, mode, agent, token=None):
    """What somebody is told whom the desk does not let in: over stdio when connecting, over HTTP when calling."""
    try:
        async with connected(connect, desk, mode, agent, token) as (client, _):
            return json.dumps(await refused(client, "send_message", to="cowork", content="x"))
    except* MCPError as errors:
        told = leaves(errors)
    return told


def leaves(error):
    return " ".join(leaves(e) for e in error.exceptions) if isinstance(error, BaseExceptionGroup) else str(error)


async def closed_desk(desk):
    desk.claim()
    token = desk.register("code")
    for connect in (stdio, http):
        for mode in ("legacy", "auto"):
            print(f"-- closed, {connect.__name__}, {mode}", flush=True)
            wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
            check("token" in await turned_away(connect, desk, mode, "code"), "a name alone is refused, and told what is missing")
            check("token" in await turned_away(connect, desk, mode, None, wrong), "a wrong token is refused")
            async with connected(connect, desk, mode, None, token) as (client, _):
                result = await client.call_tool("send_message", {"to": "code", "content": "to myself"})
                check(not result.is_error and not (result.meta or {}).get("deskmate/unverified"), "the token is accepted, and proves who calls")
                got = (await call(client, "read_messages", mark_read=True))["messages"]
                check([(m["sender"], m["verified"]) for m in got] == [("code", True)], "and the message says so")


def main():
    with Desk() as desk:
        asyncio.run(asyncio.wait_for(open_desk(desk), 300))
    with Desk() as desk:
        asyncio.run(asyncio.wait_for(lending_a_model(desk), 120))
    with Desk() as desk:
        asyncio.run(asyncio.wait_for(closed_desk(desk), 120))


if __name__ == "__main__":
    main()
