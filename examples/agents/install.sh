#!/bin/sh
# Installs agents for the scripts of this folder: install.sh DIR [NAME...]
# Each Python agent gets an environment of its own, because they need different versions of the same
# packages. Those in JavaScript share one folder.
set -eu
dir=$1
shift
[ $# -gt 0 ] || set -- openai-agents langgraph pydantic-ai smolagents agno strands adk autogen npm

packages() {
	case $1 in
	openai-agents) echo openai-agents==0.24.0 ;;
	langgraph) echo langgraph==1.2.22 langchain==1.4.7 langchain-openai==1.7.3 \
		langchain-mcp-adapters==0.3.2 ;;
	pydantic-ai) echo 'pydantic-ai-slim[openai,mcp]==2.68.0' ;;
	smolagents) echo 'smolagents[openai,mcp]==1.26.0' 'mcp<2' websockets ;;
	agno) echo agno==3.1.10 openai 'fastmcp>=4,<5' ;;
	strands) echo 'strands-agents[anthropic]==1.62.0' 'mcp<2' ;;
	adk) echo 'google-adk[mcp]==2.13.0' litellm==1.106.2 ;;
	autogen) echo autogen-agentchat==0.7.5 'autogen-ext[openai,mcp]==0.7.5' 'mcp<2' ;;
	npm) echo ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/mcp@2.0.99 @openai/agents@0.20.0 ;;
	*) echo "install.sh: unknown agent $1" >&2 && return 1 ;;
	esac
}

for name; do
	[ -f "$dir/$name/done" ] && continue
	list=$(packages "$name")
	if [ "$name" = npm ]; then
		# shellcheck disable=SC2086 # a list of words
		npm install --silent --no-audit --no-fund --no-save --prefix "$dir/npm" $list
	else
		python3 -m venv "$dir/$name"
		# shellcheck disable=SC2086
		"$dir/$name/bin/python" -m pip install -q $list
	fi
	touch "$dir/$name/done"
done
