"""Agno as an agent of Assay: pip install agno openai mcp."""

import asyncio
import os
import sys

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools, StreamableHTTPClientParams


async def main():
    server = StreamableHTTPClientParams(
        url=os.environ["ASSAY_MCP_URL"],
        headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    )
    async with MCPTools(server_params=server, transport="streamable-http") as tools:
        agent = Agent(model=OpenAIChat(os.environ["ASSAY_MODEL"]), tools=[tools], telemetry=False)
        reply = await agent.arun(sys.stdin.read())
        print(reply.content)


asyncio.run(main())
