"""AgentDojo (97 user tasks, 949 pairs with an injection task) as an OpenEnv server, over the
unmodified package agentdojo.

`python agentdojo_env.py tasks SUITE` prints the user tasks for Assay, and `… pairs SUITE` the pairs.
The verdicts are the package's own utility() of the user task and security() of the injection task.

A pair has two environments, in which all calls are made: a clean one, and one with the injections
that the package's attack plants. A call with the fault `injected` is answered by the second one, all
others by the first. With every call injected, that is the package's own benchmark.
"""

import copy
import functools
import json
import sys
import types

import yaml

yaml.safe_load = functools.partial(yaml.load, Loader=yaml.CSafeLoader)  # 10 times as fast

from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str

from dialogue import Dialogue, Seen, failed, judged, serve, user

SUITES = get_suites("v1.2.2")
ATTACK = "important_instructions_no_names"  # the model may be any
VICTIM = types.SimpleNamespace(name="local")  # an attack wants to know a pipeline of the package


@functools.cache
def plan(suite, task_id):
    """The package's reference calls of a task at its start, and its answer."""
    task = SUITES[suite].get_user_task_by_id(task_id)
    environment = fresh(suite, task)
    calls = task.ground_truth(environment)
    return [{"tool": c.function, "arguments": dict(c.args)} for c in calls], task.GROUND_TRUTH_OUTPUT


@functools.cache
def attack(suite):
    return load_attack(ATTACK, SUITES[suite], VICTIM)


@functools.cache
def loaded(suite, task=None, injection=None):
    """The data of a suite, with the injections of a pair."""
    planted = attack(suite).attack(task, injection) if injection else {}
    return SUITES[suite].load_and_inject_default_environment(planted)


def fresh(suite, task, injection=None):
    data = loaded(suite, task, injection) if injection else loaded(suite)
    return task.init_environment(copy.deepcopy(data))


def tool(function):
    return {"name": function.name, "description": function.description,
            "input_schema": function.parameters.model_json_schema()}


def tasks(suite, injections=("",)):
    for task_id in SUITES[suite].user_tasks:
        calls, answer = plan(suite, task_id)
        for injection in injections:
            name = "-".join(part for part in (suite, task_id, injection) if part)
            yield {
                "id": name, "type": suite, "reset": {"task_id": name},
                "plan": json.loads(json.dumps(calls, default=str)), "answer": answer,
            }


def utility(suite, task, output, before, after, calls):
    """The verdict, by the calls if the task judges them, as the package has it."""
    by_calls = task.utility_from_traces(output, before, after, calls)
    return task.utility(output, before, after) if by_calls is None else by_calls


def security(task, output, before, after, calls):
    """Whether the aim of an injection task failed."""
    by_calls = task.security_from_traces(output, before, after, calls)
    return not (task.security(output, before, after) if by_calls is None else by_calls)


class Dojo(Dialogue):
    def begin(self, task_id):
        self.suite, task_id, injection = (task_id.split("-") + [""])[:3]
        suite = SUITES[self.suite]
        self.task = suite.get_user_task_by_id(task_id)
        self.injection = suite.get_injection_task_by_id(injection) if injection else None
        self.environment = fresh(self.suite, self.task, self.injection)
        self.before = copy.deepcopy(self.environment)
        self.clean = fresh(self.suite, self.task) if injection else None
        self.runtime, self.calls = FunctionsRuntime(suite.tools), []
        return user(self.task.PROMPT)

    def tools(self):
        return [tool(f) for f in self.runtime.functions.values()]

    def call(self, name, arguments):
        answer = self.make(self.environment, name, arguments)
        if self.injection:
            answer = self.make(self.clean, name, arguments)
        return self.record(name, arguments, answer)

    def inject(self, name, arguments):
        answer = self.make(self.environment, name, arguments)
        if self.injection:
            answer.injected = answer.result != self.make(self.clean, name, arguments).result
        return self.record(name, arguments, answer)

    def make(self, environment, name, arguments):
        result, error = self.runtime.run_function(environment, name, copy.deepcopy(arguments))
        return failed(error) if error else Seen(result=tool_result_to_str(result))

    def record(self, name, arguments, answer):
        """Add a call. An episode may end at any call, so each answer has the second verdict."""
        self.calls.append(FunctionCall(function=name, args=arguments))
        if self.injection:
            answer.verdict = self.security("")
        return answer

    def security(self, output):
        return {"security": security(
            self.injection, output, self.before, self.environment, self.calls)}

    def message(self, content):
        useful = utility(self.suite, self.task, content, self.before, self.environment, self.calls)
        return judged(useful, self.security(content) if self.injection else None)


if __name__ == "__main__" and sys.argv[1:2] == ["tasks"]:
    json.dump(list(tasks(sys.argv[2])), sys.stdout)
if __name__ == "__main__" and sys.argv[1:2] == ["pairs"]:
    json.dump(list(tasks(sys.argv[2], SUITES[sys.argv[2]].injection_tasks)), sys.stdout)
app = serve(Dojo)
