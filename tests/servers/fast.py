"""A server made with fastmcp; over stdio, or over HTTP on the port that is given."""

import sys

from fastmcp import Context, FastMCP

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def count(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
    return f"counted to {to}"


@server.resource("fast://greeting")
def greeting() -> str:
    return "good morning"


@server.prompt
def review(code: str) -> str:
    return f"Review this: {code}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(show_banner=False)
