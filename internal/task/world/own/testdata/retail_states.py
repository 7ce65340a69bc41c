"""Prints a digest of τ²-bench's database after the reference calls of each retail task.

TAU2 names the checkout. The Python is that of `examples/environments/install.sh tau2`.
"""

import hashlib
import json
import os
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # the checkout prints when it is imported
sys.path.insert(0, os.environ["TAU2"] + "/src")
os.environ.setdefault("TAU2_DATA_DIR", os.environ["TAU2"] + "/data")

from loguru import logger

from tau2.data_model.message import ToolCall
from tau2.domains.retail.environment import get_environment, get_tasks

logger.remove()


def plain(value):
    """Returns a value without members that are None, and with whole numbers as integers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


digests = {}
for task in get_tasks(None):
    environment = get_environment()
    for n, action in enumerate(task.evaluation_criteria.actions or []):
        environment.get_response(ToolCall(id=str(n), name=action.name, arguments=action.arguments))
    state = plain(environment.tools.db.model_dump(mode="json"))
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digests[task.id] = hashlib.sha256(text.encode()).hexdigest()[:32]
json.dump(digests, OUT, indent=0)
