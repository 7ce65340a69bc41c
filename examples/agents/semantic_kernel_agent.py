"""Semantic Kernel as an agent of Assay: pip install 'semantic-kernel[mcp]'."""

import asyncio
import os
import sys

from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin


async def main():
    server = MCPStreamableHttpPlugin(
        name="assay",
        url=os.environ["ASSAY_MCP_URL"],
        headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    )
    calls = FunctionChoiceBehavior.Auto()
    calls.maximum_auto_invoke_attempts = 40  # it would stop after 5 replies with calls
    async with server:
        agent = ChatCompletionAgent(
            service=OpenAIChatCompletion(ai_model_id=os.environ["ASSAY_MODEL"]),
            name="worker",
            plugins=[server],
            function_choice_behavior=calls,
        )
        print(await agent.get_response(sys.stdin.read()))


asyncio.run(main())
