"""Judges transcripts as the checkout's own evaluation does: a line of JSON each, and a verdict each.

`TAU2_DOMAIN` names the domain. A call is made again in a fresh environment of the checkout's registry.
"""

import json
import os
import pickle
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # the checkout prints when it is imported
sys.path.insert(0, os.environ["TAU2"] + "/src")
os.environ.setdefault("TAU2_DATA_DIR", os.environ["TAU2"] + "/data")

from loguru import logger
from tau2.data_model.message import AssistantMessage, ToolCall
from tau2.data_model.simulation import SimulationRun, TerminationReason
from tau2.data_model.tasks import RewardType, Task
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
from tau2.registry import registry

logger.remove()
DOMAIN = os.environ["TAU2_DOMAIN"]
SOLO = DOMAIN != "retail"
name = "tasks_small.json" if DOMAIN == "telecom" else "tasks.json"
with open(f"{os.environ['TAU2_DATA_DIR']}/tau2/domains/{DOMAIN}/{name}") as file:
    tasks = {f"{DOMAIN}-{t['id']}": Task.model_validate(t) for t in json.load(file)}

# The registry's constructor reads the databases each time. A copy of them is the same.
construct = registry.get_env_constructor(DOMAIN)
first = construct()
users = getattr(first.user_tools, "db", None)
DATA = pickle.dumps({"db": first.tools.db} | ({"user_db": users} if users is not None else {}))


def environment(**options):
    return construct(**pickle.loads(DATA), **options)


registry.get_env_constructor = lambda domain: environment


def rewards(task, messages):
    """The rewards that count without the judgement of a model."""
    run = SimulationRun.model_construct(
        task_id=task.id, messages=messages, termination_reason=TerminationReason.AGENT_STOP)
    kinds = [EvaluationType.ENV, EvaluationType.COMMUNICATE]
    if RewardType.ACTION in task.evaluation_criteria.reward_basis:
        kinds.append(EvaluationType.ACTION)
    for kind in kinds:
        try:
            yield evaluate_simulation(run, task, kind, solo_mode=SOLO, domain=DOMAIN).reward
        except ValueError as e:  # an assertion about something that is not there
            assert "not found" in str(e)
            yield 0


for line in sys.stdin:
    played = json.loads(line)
    task, messages, live = tasks[played["task"]], [], environment(solo_mode=SOLO)
    if task.initial_state:
        live.set_state(task.initial_state.initialization_data, task.initial_state.initialization_actions, [])
    for turn in played["turns"]:
        for c in turn:
            call = ToolCall(id=str(len(messages)), name=c["tool"], arguments=c["arguments"])
            messages += [AssistantMessage(role="assistant", tool_calls=[call]), live.get_response(call)]
        messages.append(AssistantMessage(role="assistant", content=played["answer"]))
    print(json.dumps(all(reward == 1 for reward in rewards(task, messages))), file=OUT, flush=True)
