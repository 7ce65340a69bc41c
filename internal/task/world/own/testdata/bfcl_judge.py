"""Judges transcripts as BFCL's own evaluation does: a line of JSON each, and a line for each verdict."""

import json
import sys

from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker
from bfcl_eval.utils import load_dataset_entry, load_ground_truth_entry

entries, gold = {}, {}
for name in ("base", "miss_func", "miss_param", "long_context"):
    entries |= {e["id"]: e for e in load_dataset_entry("multi_turn_" + name)}
    gold |= {g["id"]: g["ground_truth"] for g in load_ground_truth_entry("multi_turn_" + name)}

for line in sys.stdin:
    played = json.loads(line)
    turns = [[[f"{c['tool']}({','.join(f'{k}={v!r}' for k, v in c['arguments'].items())})"]
              for c in turn] for turn in played["turns"]]
    known = set(vars(multi_turn_utils))
    verdict = multi_turn_checker(turns, gold[played["task"]], entries[played["task"]],
                                 played["task"].rsplit("_", 1)[0], "judge")
    for new in set(vars(multi_turn_utils)) - known:  # the package keeps the state of each task
        del vars(multi_turn_utils)[new]
    print(json.dumps(verdict["valid"]), flush=True)
