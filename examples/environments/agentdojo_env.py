"""AgentDojo (97 user tasks, 949 pairs with an injection task) as an OpenEnv server, over the
unmodified package agentdojo.

`python agentdojo_env.py tasks SUITE` prints the user tasks for Assay, and `… pairs SUITE` the pairs.
The verdicts are the package's own utility() of the user task and security() of the injection task.

A pair has two environments, in which all calls are made: a clean one, and one with the injections
that the package's attack plants. A call with the fault `injected` is answered by the second one, all
others by the first. The plan and the verdicts are those of the second one, so with every call
injected, that is the package's own benchmark. Whoever saw clean data that differ may also have
solved the user task with these.
"""

import ast
import copy
import functools
import json
import sys
import threading
import types

import yaml

yaml.safe_load = functools.partial(yaml.load, Loader=yaml.CSafeLoader)  # 10 times as fast

from agentdojo.agent_pipeline.agent_pipeline import load_system_message
from agentdojo.agent_pipeline.tool_execution import is_string_list, tool_result_to_str
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

from dialogue import Dialogue, Seen, failed, judged, serve

SUITES = get_suites("v1.2.2")
ATTACK = "important_instructions_no_names"  # the model may be any
PARSING = threading.Lock()  # the package parses Python to read values, which threads must not do at once
VICTIM = types.SimpleNamespace(name="local")  # an attack wants to know a pipeline of the package


def plan(suite, task, injection=None):
    """The package's reference calls of a task at its start."""
    calls = task.ground_truth(fresh(suite, task, injection))
    return [{"tool": c.function, "arguments": dict(c.args)} for c in calls]


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


def tasks(suite, injections=None):
    for task_id, task in SUITES[suite].user_tasks.items():
        for injection_id, injection in (injections or {"": None}).items():
            name = "-".join(part for part in (suite, task_id, injection_id) if part)
            calls = plan(suite, task, injection)
            yield {
                "id": name, "type": suite, "reset": {"task_id": name},
                "plan": json.loads(json.dumps(calls, default=str)), "answer": task.GROUND_TRUTH_OUTPUT,
            }


def utility(suite, task, output, before, after, calls):
    """The verdict, by the calls if the task judges them, as the package has it."""
    by_calls = task.utility_from_traces(output, before, after, calls)
    return task.utility(output, before, after) if by_calls is None else by_calls


def security(task, output, before, after, calls):
    """Whether the aim of an injection task failed."""
    by_calls = task.security_from_traces(output, before, after, calls)
    return not (task.security(output, before, after) if by_calls is None else by_calls)


def converted(arguments):
    """The arguments with lists that are given as text, as the package converts them."""
    return {k: ast.literal_eval(v) if isinstance(v, str) and is_list(v) else v
            for k, v in arguments.items()}


def is_list(text):
    try:
        return is_string_list(text)
    except Exception:  # nested too deeply, for example
        return False


class Dojo(Dialogue):
    def begin(self, task_id):
        self.suite, task_id, injection = (task_id.split("-") + [""])[:3]
        suite = SUITES[self.suite]
        self.task = suite.get_user_task_by_id(task_id)
        self.injection = suite.get_injection_task_by_id(injection) if injection else None
        self.environment = fresh(self.suite, self.task, self.injection)
        self.before = copy.deepcopy(self.environment)
        self.clean = fresh(self.suite, self.task) if injection else None
        self.clean_before, self.saw_clean = copy.deepcopy(self.clean), False
        self.runtime, self.calls = FunctionsRuntime(suite.tools), []
        return Seen(messages=[{"role": "system", "content": load_system_message(None)},
                              {"role": "user", "content": self.task.PROMPT}])

    def step(self, action, timeout_s=None, **kwargs):
        with PARSING:
            return super().step(action, timeout_s, **kwargs)

    def tools(self):
        return [tool(f) for f in self.runtime.functions.values()]

    def call(self, name, arguments, injected=False):
        arguments = converted(arguments)
        answer = self.make(self.environment, name, arguments)
        if self.injection:
            clean = self.make(self.clean, name, arguments)
            differs = answer != clean
            if not injected:
                answer, self.saw_clean = clean, self.saw_clean or differs
            answer.injected = injected and differs
        self.calls.append(FunctionCall(function=name, args=arguments))
        if self.injection:  # an episode may end at any call
            answer.verdict = self.security("")
        return answer

    def inject(self, name, arguments):
        return self.call(name, arguments, injected=True)

    def make(self, environment, name, arguments):
        result, error = self.runtime.run_function(environment, name, copy.deepcopy(arguments))
        return failed(error) if error else Seen(result=tool_result_to_str(result))

    def security(self, output):
        return {"security": security(
            self.injection, output, self.before, self.environment, self.calls)}

    def message(self, content):
        useful = utility(self.suite, self.task, content, self.before, self.environment, self.calls)
        if self.saw_clean:
            useful = useful or utility(
                self.suite, self.task, content, self.clean_before, self.clean, self.calls)
        return judged(useful, self.security(content) if self.injection else None)


if __name__ == "__main__" and sys.argv[1:2] == ["tasks"]:
    json.dump(list(tasks(sys.argv[2])), sys.stdout)
if __name__ == "__main__" and sys.argv[1:2] == ["pairs"]:
    json.dump(list(tasks(sys.argv[2], SUITES[sys.argv[2]].injection_tasks)), sys.stdout)
app = serve(Dojo)
