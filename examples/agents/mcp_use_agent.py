"""mcp-use as an agent of Assay: pip install mcp-use langchain-openai."""

import asyncio
import os
import sys

from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient

client = MCPClient.from_dict({"mcpServers": {"assay": {
    "url": os.environ["ASSAY_MCP_URL"],
    "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
}}})
agent = MCPAgent(ChatOpenAI(model=os.environ["ASSAY_MODEL"]), client, max_steps=80)
print(asyncio.run(agent.run(sys.stdin.read())))
