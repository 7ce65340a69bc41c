"""AgentDojo's user tasks (97) as an OpenEnv server, over the unmodified package agentdojo.

`python agentdojo_env.py tasks` prints the tasks for Assay. The verdict is the package's own
utility() of the task. Its injections are not planted.
"""

import copy
import functools
import json
import sys

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str

from dialogue import Dialogue, Seen, failed, judged, serve, user

SUITES = get_suites("v1.2.2")


@functools.cache
def plan(suite, task_id):
    """The package's reference calls of a task at its start, and its answer."""
    task = SUITES[suite].get_user_task_by_id(task_id)
    environment = fresh(suite, task)
    calls = task.ground_truth(environment)
    return [{"tool": c.function, "arguments": dict(c.args)} for c in calls], task.GROUND_TRUTH_OUTPUT


def fresh(suite, task):
    return task.init_environment(SUITES[suite].load_and_inject_default_environment({}))


def tool(function):
    return {"name": function.name, "description": function.description,
            "input_schema": function.parameters.model_json_schema()}


def tasks(suite):
    for task_id in SUITES[suite].user_tasks:
        calls, answer = plan(suite, task_id)
        yield {
            "id": f"{suite}-{task_id}", "type": suite,
            "reset": {"task_id": f"{suite}-{task_id}"},
            "plan": json.loads(json.dumps(calls, default=str)), "answer": answer,
        }


def utility(suite, task, output, before, after, calls):
    """The verdict, by the calls if the task judges them, as the package has it."""
    by_calls = task.utility_from_traces(output, before, after, calls)
    return task.utility(output, before, after) if by_calls is None else by_calls


class Dojo(Dialogue):
    def begin(self, task_id):
        self.suite, _, task_id = task_id.partition("-")
        self.task = SUITES[self.suite].get_user_task_by_id(task_id)
        self.environment = fresh(self.suite, self.task)
        self.before = copy.deepcopy(self.environment)
        self.runtime, self.calls = FunctionsRuntime(SUITES[self.suite].tools), []
        return user(self.task.PROMPT)

    def tools(self):
        return [tool(f) for f in self.runtime.functions.values()]

    def call(self, name, arguments):
        self.calls.append(FunctionCall(function=name, args=arguments))
        result, error = self.runtime.run_function(self.environment, name, arguments)
        return failed(error) if error else Seen(result=tool_result_to_str(result))

    def message(self, content):
        return judged(utility(self.suite, self.task, content, self.before, self.environment, self.calls))


if __name__ == "__main__" and sys.argv[1:2] == ["tasks"]:
    json.dump(list(tasks(sys.argv[2])), sys.stdout)
app = serve(Dojo)
