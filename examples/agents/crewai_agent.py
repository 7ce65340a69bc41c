"""CrewAI as an agent of Assay: pip install crewai mcpadapt."""

import os
import sys

from crewai import LLM, Agent
from mcpadapt.core import MCPAdapt
from mcpadapt.crewai_adapter import CrewAIAdapter

server = {
    "url": os.environ["ASSAY_MCP_URL"],
    "transport": "streamable-http",
    "headers": {"Authorization": "Bearer " + os.environ["ASSAY_TOKEN"]},
}
with MCPAdapt(server, CrewAIAdapter()) as tools:
    agent = Agent(
        role="worker",
        goal="do the task",
        backstory="a careful worker",
        llm=LLM(model=os.environ["ASSAY_MODEL"], provider="openai"),
        tools=tools,
        max_iter=40,
        use_better_compaction=False,  # models see long results
    )
    print(agent.kickoff(sys.stdin.read()).raw)
