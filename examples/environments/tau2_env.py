"""τ²-bench (retail 114 tasks, mock 8, telecom's 20 small ones) as an OpenEnv server, over an unmodified
checkout of tau2-bench.

`TAU2` names the checkout, and `TAU2_DOMAIN` the domain (retail). `python tau2_env.py tasks` prints the
tasks for Assay. The verdict is the checkout's own evaluation of databases, assertions, facts that the
agent has to tell and, if they count, calls; only the judgement of a model is left out.

Without a simulated user, the user's whole wish is the first message, and the answer ends the episode;
in domains whose user has tools, the agent has them, too (the checkout's solo mode). With
`TAU2_USER=simulated`, the checkout's own simulator speaks, through the endpoint that Assay gives it.
"""

import importlib
import json
import os
import pickle
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # the checkout prints when it is imported
sys.path.insert(0, os.environ["TAU2"] + "/src")
os.environ.setdefault("TAU2_DATA_DIR", os.environ["TAU2"] + "/data")

from loguru import logger

from dialogue import Dialogue, Seen, failed, judged, serve, user
from tau2.data_model.message import AssistantMessage, MultiToolMessage, ToolCall
from tau2.data_model.tasks import RewardType, Task
from tau2.evaluator.evaluator_action import ActionEvaluator
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
from tau2.evaluator.evaluator_env import EnvironmentEvaluator
from tau2.user.user_simulator import UserSimulator

logger.remove()  # it warns of calls in the reference plans that fail
DOMAIN = os.environ.get("TAU2_DOMAIN", "retail")
SIMULATED = os.environ.get("TAU2_USER") == "simulated"
SOLO = DOMAIN != "retail" and not SIMULATED
OPENING = "A customer has joined the chat. Greet the customer, and ask how you can help."
module = importlib.import_module(f"tau2.domains.{DOMAIN}.environment")


def databases():
    found = module.get_environment()
    users = getattr(found.user_tools, "db", None)
    return {"db": found.tools.db} | ({"user_db": users} if users is not None else {})


DATA = pickle.dumps(databases())  # copying them is faster than reading them


def environment(solo_mode=False):
    return module.get_environment(**pickle.loads(DATA), solo_mode=solo_mode)


def listed():
    """The tasks that begin with the conversation, and in solo mode have a ticket."""
    name = "tasks_small.json" if DOMAIN == "telecom" else "tasks.json"
    with open(f"{os.environ['TAU2_DATA_DIR']}/tau2/domains/{DOMAIN}/{name}") as file:
        all_tasks = [Task.model_validate(task) for task in json.load(file)]
    begun = [t for t in all_tasks if t.initial_state and t.initial_state.message_history]
    return {t.id: t for t in all_tasks if t not in begun and (t.ticket or not SOLO)}


TASKS = listed()


def tool(function):
    return {"name": function["name"], "description": function["description"],
            "input_schema": function["parameters"]}


OFFICE = environment(SOLO)
TOOLS = [tool(t.openai_schema["function"])
         for t in OFFICE.get_tools() + (OFFICE.get_user_tools() if SOLO else [])]


def prompt(task):
    if SOLO:
        return task.ticket
    said = task.user_scenario.instructions
    if isinstance(said, str):
        return said
    parts = [said.reason_for_call, said.known_info, said.unknown_info, said.task_instructions]
    return "\n".join(part for part in parts if part)


def tasks():
    for task in TASKS.values():
        criteria = task.evaluation_criteria
        calls = [a for a in criteria.actions or [] if SOLO or a.requestor == "assistant"]
        yield {
            "id": f"{DOMAIN}-{task.id}",
            "type": DOMAIN,
            "reset": {"task_id": task.id},
            "plan": [{"tool": a.name, "arguments": a.arguments, "turn": 1 + SIMULATED} for a in calls],
            "answer": ", ".join(criteria.communicate_info or []),
        }


def verdict(task, messages):
    """What the checkout finds in a conversation, without the judgement of a model."""
    try:
        checks = EnvironmentEvaluator.calculate_reward(environment, task, messages, solo_mode=SOLO)
        right = checks.reward == 1
    except ValueError:  # an assertion of the checkout about something that is not there
        right = False
    told = CommunicateEvaluator.calculate_reward(task, messages)
    found = {"environment": right, "told": told.reward == 1}
    if RewardType.ACTION in task.evaluation_criteria.reward_basis:
        found["actions"] = ActionEvaluator.calculate_reward(task, messages).reward == 1
    return found


class Office(Dialogue):
    def begin(self, task_id):
        self.task, self.environment, self.messages = TASKS[task_id], environment(SOLO), []
        if start := self.task.initial_state:
            self.environment.set_state(start.initialization_data, start.initialization_actions, [])
        self.heard, self.user = 0, None  # answers so far; the simulated user
        first = OPENING if SIMULATED else prompt(self.task)
        return Seen(messages=[{"role": "system", "content": OFFICE.get_policy()},
                              {"role": "user", "content": first}])

    def tools(self):
        return TOOLS

    def call(self, name, arguments):
        call = ToolCall(id=str(len(self.messages)), name=name, arguments=arguments)
        answer = self.environment.get_response(call)
        self.messages += [AssistantMessage(role="assistant", tool_calls=[call]), answer]
        return failed(answer.content) if answer.error else Seen(result=answer.content)

    def message(self, content):
        self.heard += 1
        self.messages.append(AssistantMessage(role="assistant", content=content or "-"))
        if SIMULATED and self.user_token:
            said = self.speak()
            if not UserSimulator.is_stop(said):
                return user(said.content)
        elif SIMULATED and self.heard == 1:
            return user(prompt(self.task))  # somebody validates the tasks, without a model
        found = verdict(self.task, self.messages)
        return judged(all(found.values()), found)

    def speak(self):
        """What the simulated user says, who may call tools before."""
        if self.user is None:
            users = self.environment.get_user_tools() if self.environment.user_tools else None
            self.user = UserSimulator(
                llm="openai/user", instructions=str(self.task.user_scenario), tools=users, llm_args={
                    "api_base": os.environ["ASSAY_USER_URL"], "api_key": self.user_token,
                    "temperature": 0, "num_retries": 0})
            self.memory = self.user.get_init_state()
        heard = self.messages[-1]
        while True:
            said, self.memory = self.user.generate_next_message(heard, self.memory)
            self.messages.append(said)
            if not said.is_tool_call():
                return said
            answers = [self.environment.get_response(call) for call in said.tool_calls]
            self.messages += answers
            heard = answers[0] if len(answers) == 1 else MultiToolMessage(
                role="tool", tool_messages=answers)


if __name__ == "__main__" and sys.argv[1:] == ["tasks"]:
    json.dump(list(tasks()), OUT)
app = serve(Office)
