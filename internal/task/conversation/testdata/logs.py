"""Writes a log in each of Inspect's formats: what a model that follows a script does with a wallet."""
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolError, tool


@tool
def pay():
    async def execute(sender: str, receiver: str, euros: float):
        """Send euros.

        Args:
            sender: who pays
            receiver: who is paid
            euros: how many
        """
        if euros > 60:
            raise ToolError(f"NOT_ENOUGH: {sender} has less than {euros} euros")
        return '{"left": %g}' % (60 - euros)

    return execute


@tool
def balance():
    async def execute(owner: str):
        """Say how many euros somebody has.

        Args:
            owner: who
        """
        return '{"owner": "%s", "euros": 40}' % owner

    return execute


def used(output):  # else Inspect downloads a tokenizer to count
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def call(name, **arguments):
    return used(ModelOutput.for_tool_call("mockllm/model", name, arguments))


def say(text):
    return used(ModelOutput.from_content("mockllm/model", text))


samples = [
    Sample(input="Ada owes Bob 25 euros.", id="pay-bob"),
    Sample(input="How much has Bob?", id="how-much"),
    Sample(input="Ada owes Bob 25 euros.", id="x", metadata={"task": "pay-bob"}),
]
for log_format in "eval", "json":
    script = [
        call("pay", sender="ada", receiver="bob", euros=25), say("Paid."),
        call("balance", owner="bob"), say("Bob has 40 euros."),
        call("pay", sender="ada", receiver="bob", euros=250), say("I cannot pay that."),
    ]
    eval(
        Task(dataset=samples, solver=[use_tools(pay(), balance()), generate()]),
        model=get_model("mockllm/model", custom_outputs=script),
        log_dir=sys.argv[1], log_format=log_format, display="none", max_samples=1,
    )
