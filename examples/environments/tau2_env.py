"""τ²-bench retail (114 tasks) as an OpenEnv server, over an unmodified checkout of tau2-bench.

`TAU2` names the checkout. `python tau2_env.py tasks` prints the tasks for Assay. The user's whole
wish is the first message, so no simulated user is needed, and answers end the episode. The verdict
is the checkout's own evaluation of the database and of the facts that the agent has to tell.
"""

import json
import os
import pickle
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # the checkout prints when it is imported
sys.path.insert(0, os.environ["TAU2"] + "/src")
os.environ.setdefault("TAU2_DATA_DIR", os.environ["TAU2"] + "/data")

from loguru import logger

from dialogue import Dialogue, Seen, failed, judged, serve
from tau2.data_model.message import AssistantMessage, ToolCall
from tau2.domains.retail.data_model import RetailDB
from tau2.domains.retail.environment import get_environment, get_tasks
from tau2.domains.retail.utils import RETAIL_DB_PATH
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
from tau2.evaluator.evaluator_env import EnvironmentEvaluator

logger.remove()  # it warns of calls in the reference plans that fail
TASKS = {task.id: task for task in get_tasks(None)}
DATA = pickle.dumps(RetailDB.load(RETAIL_DB_PATH))  # copying it is faster than reading it


def environment(solo_mode=False):
    return get_environment(db=pickle.loads(DATA))


def tool(function):
    return {"name": function["name"], "description": function["description"],
            "input_schema": function["parameters"]}


POLICY = environment().get_policy()
TOOLS = [tool(t.openai_schema["function"]) for t in environment().get_tools()]


def prompt(task):
    said = task.user_scenario.instructions
    parts = [said.reason_for_call, said.known_info, said.unknown_info, said.task_instructions]
    return "\n".join(part for part in parts if part)


def tasks():
    for task in TASKS.values():
        criteria = task.evaluation_criteria
        yield {
            "id": "retail-" + task.id,
            "type": "retail",
            "reset": {"task_id": task.id},
            "plan": [{"tool": a.name, "arguments": a.arguments} for a in criteria.actions or []],
            "answer": ", ".join(criteria.communicate_info or []),
        }


def verdict(task, messages):
    """The reward of a conversation, as the checkout computes it without the judgement of a model."""
    checks = EnvironmentEvaluator.calculate_reward(environment, task, messages)
    told = CommunicateEvaluator.calculate_reward(task, messages)
    return checks.db_check is None or checks.db_check.db_match, told.reward == 1


class Retail(Dialogue):
    def begin(self, task_id):
        self.task, self.environment, self.messages = TASKS[task_id], environment(), []
        return Seen(messages=[{"role": "system", "content": POLICY},
                              {"role": "user", "content": prompt(self.task)}])

    def tools(self):
        return TOOLS

    def call(self, name, arguments):
        call = ToolCall(id=str(len(self.messages)), name=name, arguments=arguments)
        answer = self.environment.get_response(call)
        self.messages += [AssistantMessage(role="assistant", tool_calls=[call]), answer]
        return failed(answer.content) if answer.error else Seen(result=answer.content)

    def message(self, content):
        self.messages.append(AssistantMessage(role="assistant", content=content or "-"))
        database, told = verdict(self.task, self.messages)
        return judged(database and told, {"database": database, "told": told})


if __name__ == "__main__" and sys.argv[1:] == ["tasks"]:
    json.dump(list(tasks()), OUT)
app = serve(Retail)
