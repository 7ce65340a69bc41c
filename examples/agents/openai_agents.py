"""The OpenAI Agents SDK as an agent of Assay: pip install openai-agents."""

import asyncio
import os
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp


async def main():
    set_tracing_disabled(True)
    server = MCPServerStreamableHttp({
        "url": os.environ["ASSAY_MCP_URL"],
        "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    })
    async with server:
        agent = Agent("worker", model=os.environ["ASSAY_MODEL"], mcp_servers=[server])
        result = await Runner.run(agent, sys.stdin.read(), max_turns=40)
        print(result.final_output)


asyncio.run(main())
