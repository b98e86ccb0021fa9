"""A server made with fastmcp; over stdio, or over HTTP on the port that is given."""

import sys

from fastmcp import Context, FastMCP
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def count(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
    return f"counted to {to}"


@server.tool
async def greet(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name first, and keeps nothing in between: what it needs comes back with the answer."""
    if ctx.input_responses is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        question = ElicitRequest(params=ElicitRequestFormParams(message="Who are you?", requested_schema=schema))
        return InputRequiredResult(input_requests={"who": question})
    return f"Hello, {ctx.input_responses['who'].content['name']}"


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
