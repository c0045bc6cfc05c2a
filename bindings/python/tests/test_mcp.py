"""`ackclock mcp` with the client library of the protocol."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from conftest import ROOT

mcp = pytest.importorskip("mcp")


def test_a_client_finds_the_cause(command: list[str]) -> None:
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(command=command[0], args=["mcp", "--allow", str(ROOT / "golden")])

    async def exchange() -> tuple[list[str], Any, Any]:
        async with stdio_client(server) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            file = "linux/h1_rwnd_cubic/sender.pcap.xz"
            found = await session.call_tool("diagnose", {"file": file})
            refused = await session.call_tool("diagnose", {"file": "../Cargo.toml"})
            return [tool.name for tool in tools.tools], found, refused

    names, found, refused = asyncio.run(exchange())
    assert names == ["diagnose", "flow", "explain", "whatif", "run", "theory", "compare"]
    # Version 2 of the library has names with underscores.
    dump = [one.model_dump(by_alias=True) for one in (found, refused)]
    assert [one["isError"] for one in dump] == [False, True]
    connection = json.loads(found.content[0].text)["connections"][0]
    assert connection["primary"] == "CC401"
    assert "no such file in the allowed folders" in refused.content[0].text
