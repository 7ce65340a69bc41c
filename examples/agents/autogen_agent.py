"""AutoGen as an agent of Assay: pip install autogen-agentchat 'autogen-ext[openai,mcp]'."""

import asyncio
import os
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams


async def main():
    model = OpenAIChatCompletionClient(
        model=os.environ["ASSAY_MODEL"],
        model_info={"vision": False, "function_calling": True, "json_output": False,
                    "family": "unknown", "structured_output": False},
    )
    server = StreamableHttpServerParams(
        url=os.environ["ASSAY_MCP_URL"],
        headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    )
    async with McpWorkbench(server) as tools:
        agent = AssistantAgent("worker", model, workbench=tools, max_tool_iterations=40)
        result = await agent.run(task=sys.stdin.read())
        print(result.messages[-1].to_text())


asyncio.run(main())
