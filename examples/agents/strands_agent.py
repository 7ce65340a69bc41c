"""Strands Agents as an agent of Assay: pip install 'strands-agents[anthropic]'."""

import os
import sys

from mcp.client.streamable_http import streamablehttp_client
from strands import Agent
from strands.models.anthropic import AnthropicModel
from strands.tools.mcp import MCPClient

headers = {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]}
server = MCPClient(lambda: streamablehttp_client(os.environ["ASSAY_MCP_URL"], headers=headers))
model = AnthropicModel(model_id=os.environ["ASSAY_MODEL"], max_tokens=4096)
with server:
    agent = Agent(model, tools=server.list_tools_sync(), callback_handler=None)
    print(agent(sys.stdin.read()))
