"""An agent of Pydantic AI. Needs: pip install 'pydantic-ai-slim[openai,mcp]'"""
import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

headers = {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]}
tools = MCPToolset(os.environ["ASSAY_MCP_URL"], headers=headers, max_retries=10)
agent = Agent("openai-chat:" + os.environ["ASSAY_MODEL"], toolsets=[tools])


async def main():
    async with agent:
        print((await agent.run(sys.stdin.read())).output)


asyncio.run(main())
