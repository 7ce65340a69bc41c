"""Judges calls with AgentDojo's own evaluation: a line of JSON each, and a line for each verdict.

The calls and the answer are those of a scripted agent in the package's own pipeline.
"""

import json
import sys

from agentdojo.agent_pipeline.agent_pipeline import AgentPipeline
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.basic_elements import InitQuery
from agentdojo.agent_pipeline.tool_execution import ToolsExecutionLoop, ToolsExecutor
from agentdojo.functions_runtime import FunctionCall
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

suites = get_suites("v1.2.2")


class Script(BasePipelineElement):
    """Makes one call a reply, and then says the answer."""

    def __init__(self, calls, answer):
        self.calls, self.answer = list(calls), answer

    def query(self, query, runtime, env, messages=(), extra_args={}):
        calls = None
        if self.calls:
            c = self.calls.pop(0)
            calls = [FunctionCall(function=c["tool"], args=c["arguments"], id=str(len(messages)))]
        said = ChatAssistantMessage(
            role="assistant", tool_calls=calls,
            content=[text_content_block_from_string("" if calls else self.answer)])
        return query, runtime, env, [*messages, said], extra_args


for line in sys.stdin:
    played = json.loads(line)
    name, _, task_id = played["task"].partition("-")
    task = suites[name].get_user_task_by_id(task_id)
    script = Script(played["turns"][0], played["answer"])
    pipeline = AgentPipeline([InitQuery(), script, ToolsExecutionLoop([ToolsExecutor(), script], max_iters=99)])
    useful, _ = suites[name].run_task_with_pipeline(pipeline, task, None, {})
    print(json.dumps(bool(useful)), flush=True)
