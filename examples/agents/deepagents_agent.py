"""Deep Agents as an agent of Assay: pip install deepagents langchain-openai langchain-mcp-adapters."""

import asyncio
import os
import sys

from deepagents import create_deep_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main():
    client = MultiServerMCPClient({"assay": {
        "transport": "streamable_http",
        "url": os.environ["ASSAY_MCP_URL"],
        "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    }})
    tools = await client.get_tools()
    for tool in tools:
        tool.handle_tool_error = True  # a failed tool is news for the model, not the end
    agent = create_deep_agent(ChatOpenAI(model=os.environ["ASSAY_MODEL"]), tools)
    result = await agent.ainvoke(
        {"messages": [("user", sys.stdin.read())]}, {"recursion_limit": 80})
    print(result["messages"][-1].text)


asyncio.run(main())
