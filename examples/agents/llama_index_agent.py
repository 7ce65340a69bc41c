"""LlamaIndex as an agent of Assay:
pip install llama-index-core llama-index-llms-openai-like llama-index-tools-mcp
"""

import asyncio
import os
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main():
    client = BasicMCPClient(
        os.environ["ASSAY_MCP_URL"],
        headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    )
    model = OpenAILike(
        model=os.environ["ASSAY_MODEL"],
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
    )
    agent = FunctionAgent(tools=await McpToolSpec(client).to_tool_list_async(), llm=model)
    print(await agent.run(sys.stdin.read(), max_iterations=40))


asyncio.run(main())
