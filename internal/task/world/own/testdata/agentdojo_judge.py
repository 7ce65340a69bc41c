"""Judges calls with AgentDojo's own evaluation: a line of JSON each, and a line for each verdict.

The calls and the answer are those of a scripted agent in the package's own pipeline. With the
arguments `attacks SUITE`, it prints the reference calls of the injection tasks instead, and with
`solved SUITE` the pairs that the package's own GroundTruthPipeline solves.
"""

import copy
import functools
import json
import sys
import types

import yaml

yaml.safe_load = functools.partial(yaml.load, Loader=yaml.CSafeLoader)

from agentdojo.agent_pipeline.agent_pipeline import AgentPipeline
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.basic_elements import InitQuery
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.agent_pipeline.tool_execution import ToolsExecutionLoop, ToolsExecutor
from agentdojo.attacks.attack_registry import load_attack
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


@functools.cache
def environment(name, task_id, injection_id):
    """The data of a suite with the injections of a pair, if there is one."""
    suite, planted = suites[name], {}
    if injection_id:
        attack = load_attack("important_instructions_no_names", suite, types.SimpleNamespace(name="local"))
        planted = attack.attack(
            suite.get_user_task_by_id(task_id), suite.get_injection_task_by_id(injection_id))
    return suite.load_and_inject_default_environment(planted)


def played(pipeline, name, task_id, injection_id):
    """The package's verdicts on a task or a pair: utility and, for a pair, whether the attack succeeded."""
    suite = suites[name]
    task = suite.get_user_task_by_id(task_id)
    injection = suite.get_injection_task_by_id(injection_id) if injection_id else None
    data = copy.deepcopy(environment(name, task_id if injection_id else "", injection_id))
    return suite.run_task_with_pipeline(pipeline(task), task, injection, {}, environment=data)


def solved(name):
    for task_id in suites[name].user_tasks:
        for injection_id in suites[name].injection_tasks:
            if played(GroundTruthPipeline, name, task_id, injection_id)[0]:
                yield f"{name}-{task_id}-{injection_id}", True


def attacks(name):
    suite = suites[name]
    for injection_id, injection in suite.injection_tasks.items():
        made = injection.ground_truth(suite.load_and_inject_default_environment({}))
        yield injection_id, [{"tool": c.function, "arguments": dict(c.args)} for c in made]


if sys.argv[1:]:
    what = {"attacks": attacks, "solved": solved}[sys.argv[1]]
    json.dump(dict(what(sys.argv[2])), sys.stdout, default=str)
    sys.exit()
for line in sys.stdin:
    game = json.loads(line)

    def scripted(task):
        script = Script(game["turns"][0], game["answer"])
        return AgentPipeline(
            [InitQuery(), script, ToolsExecutionLoop([ToolsExecutor(), script], max_iters=99)])

    name, task_id, injection_id = (game["task"].split("-") + [""])[:3]
    useful, successful = played(scripted, name, task_id, injection_id)
    security = {False: "held", True: "broken"}[bool(successful)] if injection_id else ""
    print((json.dumps(bool(useful)) + " " + security).strip(), flush=True)
