"""`deskmate front` before the servers that people use, called with the official Python SDK in both eras."""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning

BINARY, SERVERS, NODE = os.environ["DESKMATE"], Path(os.environ["SERVERS"]), os.environ["NODE"]
HERE = Path(__file__).resolve().parent
ERAS = ("2025-11-25", "2026-07-28")
logging.getLogger("mcp.client.streamable_http").setLevel(logging.ERROR)
warnings.simplefilter("ignore", MCPDeprecationWarning)


def npm(name):
    package = SERVERS / "node_modules" / "@modelcontextprotocol" / name
    return [NODE, str(package / "dist" / "index.js")]


@contextmanager
def front(*words, options=()):
    """A front that is stopped at the end; gives its address and its token."""
    command = [BINARY, "front", "--json", "--listen", "127.0.0.1:0", *options, *(["--", *words] if words else [])]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads(process.stdout.readline())
        yield said["url"], said["token"]
    finally:
        process.terminate()
        process.wait(20)


@asynccontextmanager
async def client(at, era):
    url, token = at
    mode = "legacy" if era == ERAS[0] else era
    transport = streamable_http_client(url, http_client=httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60))
    async with Client(transport, mode=mode) as made:
        yield made


def text(result):
    assert not result.is_error, result
    return "".join(block.text for block in result.content if block.type == "text")


async def everything(at, era):
    async with client(at, era) as mcp:
        tools = {tool.name for tool in (await mcp.list_tools()).tools}
        assert {"echo", "get-sum"} <= tools or {"echo", "add"} <= tools, tools
        assert "hello" in text(await mcp.call_tool("echo", {"message": "hello"}))
        told = []

        async def progress(done, total, message):
            told.append(done)

        longer = next(name for name in tools if "long" in name)
        await mcp.call_tool(longer, {"duration": 1, "steps": 4}, progress_callback=progress)
        assert told == sorted(told) and told, told
        assert (await mcp.list_prompts()).prompts
        resources = (await mcp.list_resources()).resources
        assert (await mcp.read_resource(str(resources[0].uri))).contents


async def filesystem(at, era, folder):
    async with client(at, era) as mcp:
        path = str(folder / f"{era}.txt")
        text(await mcp.call_tool("write_file", {"path": path, "content": "written"}))
        assert Path(path).read_text() == "written"
        assert "written" in text(await mcp.call_tool("read_text_file", {"path": path}))
        refused = await mcp.call_tool("read_text_file", {"path": "/etc/passwd"})
        assert refused.is_error, "the server's own bounds hold"


async def memory(at, era):
    async with client(at, era) as mcp:
        entity = {"name": f"Ada {era}", "entityType": "person", "observations": ["writes programs"]}
        text(await mcp.call_tool("create_entities", {"entities": [entity]}))
        graph = text(await mcp.call_tool("read_graph", {}))
        assert f"Ada {era}" in graph, "one child keeps its state over all requests"


async def fast(at, era):
    async with client(at, era) as mcp:
        assert text(await mcp.call_tool("add", {"a": 2, "b": 40})) == "42"
        assert (await mcp.call_tool("add", {"a": 2, "b": 40})).structured_content == {"result": 42}
        told = []

        async def progress(done, total, message):
            told.append(done)

        assert "counted to 5" in text(await mcp.call_tool("count", {"to": 5}, progress_callback=progress))
        assert told == [1, 2, 3, 4, 5], told
        assert "good morning" in str((await mcp.read_resource("fast://greeting")).contents)
        assert "x = 1" in str((await mcp.get_prompt("review", {"code": "x = 1"})).messages)
        many = await asyncio.gather(*(mcp.call_tool("add", {"a": n, "b": 0}) for n in range(50)))
        assert [text(result) for result in many] == [str(n) for n in range(50)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def listening(command, port):
    """A server over HTTP, once it answers."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PORT": str(port)})
    try:
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


async def both(check, at, *more):
    for era in ERAS:
        await check(at, era, *more)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        with front(*npm("server-everything"), "stdio") as at:
            asyncio.run(both(everything, at))
        print("server-everything: both eras")
        with front(*npm("server-filesystem"), str(folder)) as at:
            asyncio.run(both(filesystem, at, folder))
        print("server-filesystem: both eras")
        with front(*npm("server-memory"), options=["--env", f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}"]) as at:
            asyncio.run(both(memory, at))
        print("server-memory: both eras")
        server = str(HERE.parent / "servers" / "fast.py")
        with front(sys.executable, server) as at:
            asyncio.run(both(fast, at))
        print("fastmcp over stdio, of the newer era: both eras")
        port = free_port()
        with listening([sys.executable, server, str(port)], port) as url, front(options=["--url", url]) as at:
            asyncio.run(both(fast, at))
        print("fastmcp over HTTP, of the newer era: both eras")
        port = free_port()
        with listening([*npm("server-everything"), "streamableHttp"], port) as url, front(options=["--url", url]) as at:
            asyncio.run(both(everything, at))
        print("server-everything over HTTP, of the older era with sessions: both eras")


if __name__ == "__main__":
    main()
