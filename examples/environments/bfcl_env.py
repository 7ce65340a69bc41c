"""BFCL v4 multi-turn (800 tasks) as an OpenEnv server, over the unmodified package bfcl-eval.

`python bfcl_env.py tasks` prints the tasks for Assay. The verdict is that of the package's
multi_turn_checker, which compares state and results after each turn with the reference's. The package
evaluates calls as Python source. Here, only the reference's are: a model chooses the names and values
of its calls, so they are arguments of the same methods, and the parts of the checker judge them.
"""

import ast
import functools
import importlib
import inspect
import json
import sys
import uuid

from bfcl_eval.constants.default_prompts import DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker
from bfcl_eval.utils import load_dataset_entry, load_ground_truth_entry

from dialogue import Dialogue, Seen, failed, judged, serve, user

CATEGORIES = ["base", "miss_func", "miss_param", "long_context"]


@functools.cache
def entries():
    """All tasks by ID, each with its reference calls, a list for each turn."""
    found = {}
    for category in CATEGORIES:
        gold = {g["id"]: g["ground_truth"] for g in load_ground_truth_entry(f"multi_turn_{category}")}
        for entry in load_dataset_entry(
                f"multi_turn_{category}", include_language_specific_hint=False):
            found[entry["id"]] = entry | {"gold": gold[entry["id"]]}
    return found


def schema(doc):
    """A description of parameters with the types of JSON."""
    kind = GORILLA_TO_OPENAPI.get(doc.get("type", "string"), "string")
    inner = {n: schema(p) for n, p in doc["properties"].items()} if "properties" in doc else None
    items = schema(doc["items"]) if "items" in doc else None
    return doc | {"type": kind} | ({"properties": inner} if inner is not None else {}) | (
        {"items": items} if items is not None else {})


def tool(doc):
    return {"name": doc["name"], "description": doc["description"],
            "input_schema": schema(doc["parameters"])}


@functools.cache
def signature(classes, name):
    """The parameters of a tool, for reference calls with positional arguments."""
    for class_name in classes:
        cls = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[class_name]), class_name)
        if hasattr(cls, name):
            return list(inspect.signature(getattr(cls, name)).parameters)[1:]


def parsed(entry, text):
    """A reference call such as "cd(folder='a')" as a tool with arguments."""
    call = ast.parse(text, mode="eval").body
    names = signature(tuple(entry["involved_classes"]), call.func.id)
    arguments = {n: ast.literal_eval(a) for n, a in zip(names, call.args)}
    arguments |= {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    return {"tool": call.func.id, "arguments": arguments}


def tasks():
    for entry in entries().values():
        yield {
            "id": entry["id"],
            "type": entry["id"].removeprefix("multi_turn_").rsplit("_", 1)[0],
            "reset": {"task_id": entry["id"]},
            "plan": [parsed(entry, text) | {"turn": i + 1}
                     for i, turn in enumerate(entry["gold"]) for text in turn],
            "later_tools": [tool(d) for docs in entry.get("missed_function", {}).values() for d in docs],
        }


class Bfcl(Dialogue):
    def begin(self, task_id):
        self.entry = entries()[task_id]
        self.name = "assay" + uuid.uuid4().hex  # the package keeps instances by the model's name
        self.docs = list(self.entry["function"])
        _, self.instances = self.execute([], self.name)
        self.turn, self.made = 0, 0  # the turn, and its calls
        self.results = []  # of the calls of all turns
        self.wrong = None  # the first difference from the reference
        return user(self.entry["question"][0][-1]["content"])

    def execute(self, calls, name):
        """Carry out calls of the reference. It returns their results, and the instances."""
        entry = self.entry
        return multi_turn_utils.execute_multi_turn_func_call(
            calls, entry["initial_config"], entry["involved_classes"], name, entry["id"],
            long_context="long_context" in entry["id"])

    def tools(self):
        return [tool(doc) for doc in self.docs]

    def call(self, name, arguments):
        result = self.make(name, arguments)
        self.made += 1
        self.results.append(result)
        if result.startswith(("Error during execution:", '{"error":')):
            return failed(result)
        return Seen(result=result)

    def make(self, name, arguments):
        """Carry out a call of the model, and word its result as the package does."""
        try:
            if name not in [doc["name"] for doc in self.docs]:
                raise NameError(f"name {name!r} is not defined")
            owners = [i for i in self.instances.values() if hasattr(i, name)]
            result = getattr(owners[-1], name)(**arguments)  # which refuses names that it does not have
        except Exception as e:
            return f"Error during execution: {e}"
        if not isinstance(result, dict):
            return str(result)
        try:
            return json.dumps(result)
        except Exception:
            return str(result)

    def message(self, content):
        self.wrong = self.wrong or self.difference(self.entry["gold"][self.turn])
        self.turn, self.made = self.turn + 1, 0
        if self.turn < len(self.entry["question"]):
            self.docs += self.entry.get("missed_function", {}).get(str(self.turn), [])
            said = self.entry["question"][self.turn]
            return user(said[-1]["content"] if said else DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)
        return judged(not self.wrong, self.wrong or {})

    def difference(self, gold):
        """What the package's checker finds wrong at the end of a turn."""
        if not gold:
            return None
        results, instances = self.execute(gold, self.name + "_gold")
        if not self.made:
            return {"error_type": "multi_turn:empty_turn_model_response",
                    "error_message": f"Model response list is empty for turn {self.turn}"}
        for found in (state_checker(self.instances, instances),
                      response_checker(self.results, results, self.turn)):
            if not found["valid"]:
                return {k: str(found[k]) for k in ("error_type", "error_message")}

    def close(self):
        kept = vars(multi_turn_utils)
        for name in [n for n in kept if n.startswith(getattr(self, "name", "assay-none"))]:
            del kept[name]


entries()  # read once, before the server says that it is healthy
if __name__ == "__main__" and sys.argv[1:] == ["tasks"]:
    json.dump(list(tasks()), sys.stdout)
app = serve(Bfcl)
