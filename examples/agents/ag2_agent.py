"""AG2 as an agent of Assay: pip install 'ag2[openai,mcp]'."""

import asyncio
import os
import sys

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.tools import MCPServerConfig, MCPToolkit


async def main():
    server = MCPServerConfig(
        server_url=os.environ["ASSAY_MCP_URL"],
        authorization_token=os.environ["ASSAY_TOKEN"],
    )
    model = OpenAIConfig(model=os.environ["ASSAY_MODEL"])
    agent = Agent("worker", config=model, tools=[MCPToolkit(server)])
    reply = await agent.ask(sys.stdin.read())
    print(reply.body)


asyncio.run(main())
