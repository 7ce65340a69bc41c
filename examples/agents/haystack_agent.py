"""Haystack as an agent of Assay: pip install haystack-ai mcp-haystack."""

import os
import sys

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo

server = StreamableHttpServerInfo(
    url=os.environ["ASSAY_MCP_URL"],
    token=Secret.from_env_var("ASSAY_TOKEN"),
)
agent = Agent(
    chat_generator=OpenAIChatGenerator(model=os.environ["ASSAY_MODEL"]),
    tools=MCPToolset(server),
    max_agent_steps=40,
)
agent.warm_up()
print(agent.run(messages=[ChatMessage.from_user(sys.stdin.read())])["last_message"].text)
