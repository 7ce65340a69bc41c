"""An agent of the OpenAI Agents SDK. Needs: pip install openai-agents"""
import asyncio
import os
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

set_tracing_disabled(True)


async def main():
    headers = {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]}
    params = {"url": os.environ["ASSAY_MCP_URL"], "headers": headers}
    async with MCPServerStreamableHttp(params=params) as tools:
        agent = Agent(name="assay", model="openai/" + os.environ["ASSAY_MODEL"], mcp_servers=[tools])
        result = await Runner.run(agent, sys.stdin.read(), max_turns=50)
        print(result.final_output)


asyncio.run(main())
