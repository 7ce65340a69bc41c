"""smolagents as an agent of Assay: pip install 'smolagents[openai,mcp]'."""

import os
import sys

from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent

server = {
    "url": os.environ["ASSAY_MCP_URL"],
    "transport": "streamable-http",
    "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
}
model = OpenAIServerModel(
    os.environ["ASSAY_MODEL"],
    api_base=os.environ["OPENAI_BASE_URL"],
    api_key=os.environ["OPENAI_API_KEY"],
)
with MCPClient(server, structured_output=False) as tools:
    agent = ToolCallingAgent(tools, model, max_steps=40, verbosity_level=0)
    print(agent.run(sys.stdin.read()))
