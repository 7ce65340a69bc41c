"""Qwen-Agent as an agent of Assay: pip install 'qwen-agent[mcp]'."""

import os
import sys

from qwen_agent.agents import Assistant

server = {"mcpServers": {"assay": {
    "type": "streamable-http",
    "url": os.environ["ASSAY_MCP_URL"],
    "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
}}}
agent = Assistant(
    llm={
        "model": os.environ["ASSAY_MODEL"],
        "model_type": "oai",
        "model_server": os.environ["OPENAI_BASE_URL"],
        "api_key": os.environ["OPENAI_API_KEY"],
        "generate_cfg": {"use_raw_api": True},
    },
    function_list=[server],
)
for messages in agent.run([{"role": "user", "content": sys.stdin.read()}]):
    pass
print(messages[-1]["content"])
