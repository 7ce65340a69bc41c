"""A small agent without dependencies: it asks its model, calls the tools, and prints the answer."""
import json, os, sys, urllib.request

TOKEN = os.environ["ASSAY_TOKEN"]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {
        "Authorization": "Bearer " + TOKEN,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    })
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def mcp(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(os.environ["ASSAY_MCP_URL"], body)["result"]


tools = [{"type": "function", "function": {
    "name": tool["name"],
    "description": tool["description"],
    "parameters": tool["inputSchema"],
}} for tool in mcp("tools/list")["tools"]]
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {
        "model": os.environ["ASSAY_MODEL"], "messages": messages, "tools": tools,
    })["choices"][0]["message"]
    messages.append(reply)
    if not reply.get("tool_calls"):
        break
    for call in reply["tool_calls"]:
        result = mcp("tools/call", name=call["function"]["name"],
                     arguments=json.loads(call["function"]["arguments"]))
        text = "".join(part["text"] for part in result["content"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
print(reply["content"])
