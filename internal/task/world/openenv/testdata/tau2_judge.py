"""Judges transcripts as the checkout's own evaluation does: a line of JSON each, and a verdict each."""

import json
import os
import pickle
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # the checkout prints when it is imported
sys.path.insert(0, os.environ["TAU2"] + "/src")
os.environ.setdefault("TAU2_DATA_DIR", os.environ["TAU2"] + "/data")

from loguru import logger
from tau2.data_model.message import AssistantMessage, ToolCall
from tau2.domains.retail.data_model import RetailDB
from tau2.domains.retail.environment import get_environment, get_tasks
from tau2.domains.retail.utils import RETAIL_DB_PATH
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
from tau2.evaluator.evaluator_env import EnvironmentEvaluator

logger.remove()
tasks = {"retail-" + task.id: task for task in get_tasks(None)}
DATA = pickle.dumps(RetailDB.load(RETAIL_DB_PATH))


def environment(solo_mode=False):
    return get_environment(db=pickle.loads(DATA))


for line in sys.stdin:
    played = json.loads(line)
    task, messages, live = tasks[played["task"]], [], environment()
    for turn in played["turns"]:
        for c in turn:
            call = ToolCall(id=str(len(messages)), name=c["tool"], arguments=c["arguments"])
            messages += [AssistantMessage(role="assistant", tool_calls=[call]), live.get_response(call)]
        messages.append(AssistantMessage(role="assistant", content=played["answer"]))
    checks = EnvironmentEvaluator.calculate_reward(environment, task, messages)
    told = CommunicateEvaluator.calculate_reward(task, messages)
    matches = checks.db_check is None or checks.db_check.db_match
    print(json.dumps(bool(matches and told.reward == 1)), file=OUT, flush=True)
