"""Pydantic AI as an agent of Assay: pip install 'pydantic-ai-slim[openai,mcp]'."""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

tools = MCPToolset(
    os.environ["ASSAY_MCP_URL"],
    headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    max_retries=10,
)
agent = Agent("openai-chat:" + os.environ["ASSAY_MODEL"], toolsets=[tools])
print(asyncio.run(agent.run(sys.stdin.read())).output)
