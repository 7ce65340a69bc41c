"""An agent of LangGraph. Needs: pip install langgraph langchain langchain-openai langchain-mcp-adapters"""
import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main():
    client = MultiServerMCPClient({"assay": {
        "transport": "streamable_http",
        "url": os.environ["ASSAY_MCP_URL"],
        "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    }})
    agent = create_agent(ChatOpenAI(model=os.environ["ASSAY_MODEL"]), await client.get_tools())
    messages = [{"role": "user", "content": sys.stdin.read()}]
    result = await agent.ainvoke({"messages": messages}, {"recursion_limit": 100})
    print(result["messages"][-1].content)


asyncio.run(main())
