"""Google's Agent Development Kit as an agent of Assay: pip install google-adk litellm."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.genai import types


async def main():
    tools = McpToolset(connection_params=StreamableHTTPConnectionParams(
        url=os.environ["ASSAY_MCP_URL"],
        headers={"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
    ))
    agent = LlmAgent(
        name="worker", model=LiteLlm("openai/" + os.environ["ASSAY_MODEL"]), tools=[tools])
    runner = InMemoryRunner(agent, app_name="assay")
    session = await runner.session_service.create_session(app_name="assay", user_id="assay")
    prompt = types.Content(role="user", parts=[types.Part(text=sys.stdin.read())])
    async for event in runner.run_async(
            user_id="assay", session_id=session.id, new_message=prompt):
        if event.is_final_response() and event.content:
            print("".join(part.text or "" for part in event.content.parts))
    await tools.close()


asyncio.run(main())
