#!/bin/sh
# Installs agents for the scripts of this folder: install.sh DIR [NAME...]
# Each Python agent gets an environment of its own, because they need different versions of the same
# packages. Those in JavaScript that CI plays share one folder.
set -eu
dir=$1
shift
[ $# -gt 0 ] || set -- openai-agents langgraph pydantic-ai smolagents agno strands adk autogen npm \
	llama-index haystack crewai semantic-kernel qwen-agent mastra langchain-js deepagents \
	mcp-use strands-js ag2 copilot presets kimi fast-agent

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
	llama-index) echo llama-index-core==0.14.25 llama-index-llms-openai-like==0.8.1 \
		llama-index-tools-mcp==0.6.0 ;;
	haystack) echo haystack-ai==3.4.1 mcp-haystack==2.1.1 ;;
	crewai) echo crewai==1.15.30 mcpadapt==0.1.19 ;;
	semantic-kernel) echo 'semantic-kernel[mcp]==1.45.0' ;;
	qwen-agent) echo 'qwen-agent[mcp]==0.0.34' 'mcp<2' numpy \
		soundfile python-dateutil tqdm ;;
	npm) echo ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/mcp@2.0.99 @openai/agents@0.20.0 ;;
	mastra) echo @mastra/core@1.71.0 @mastra/mcp@2.0.0 @ai-sdk/openai@4.0.118 \
		ai-sdk-5-openai@npm:@ai-sdk/openai@2.0.131 zod@4.6.7 ;;
	langchain-js) echo langchain@1.5.14 @langchain/core@1.4.0 @langchain/langgraph@1.4.13 \
		@langchain/openai@1.6.0 @langchain/mcp-adapters@1.1.4 ;;
	deepagents) echo deepagents==0.7.32 langchain-openai==1.7.4 langchain-mcp-adapters==0.3.2 ;;
	mcp-use) echo mcp-use==1.7.1 langchain-openai==1.7.4 ;;
	strands-js) echo @strands-agents/sdk@1.19.0 @modelcontextprotocol/sdk@1.32.2 openai@6.49.0 ;;
	ag2) echo 'ag2[openai,mcp]==1.2.1' ;;
	copilot) echo @github/copilot@1.0.102 ;;
	kimi) echo node@22.23.3 @moonshot-ai/kimi-code@2.1.0 ;;
	fast-agent) echo fast-agent-mcp==0.10.48 ;;
	presets) echo @anthropic-ai/claude-code@2.1.330 @zed-industries/claude-code-acp@0.16.2 \
		@openai/codex@0.169.0 @github/copilot@1.0.102 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 \
		@qwen-code/qwen-code@0.24.4 ;;
	*) echo "install.sh: unknown agent $1" >&2 && return 1 ;;
	esac
}

# newer finds a Python that is newer than that of some systems.
newer() {
	for python in python3 python3.14 python3.13 python3.12; do
		"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo "$python" && return
	done
	echo "install.sh: $1 needs Python 3.12" >&2 && return 1
}

# with_its_node writes a program that starts Kimi Code with a newer Node than that of some systems.
with_its_node() {
	mkdir -p "$1/with-its-node"
	printf '#!/bin/sh\nexec %s/node/bin/node %s/@moonshot-ai/kimi-code/dist/main.mjs "$@"\n' "$1" "$1" \
		>"$1/with-its-node/kimi"
	chmod +x "$1/with-its-node/kimi"
}

install() {
	list=$(packages "$1") || return
	# shellcheck disable=SC2086 # lists of words
	case $1 in
	npm | mastra | langchain-js | strands-js | copilot | presets | kimi)
		npm install --silent --no-audit --no-fund --no-save --prefix "$dir/$1" $list &&
			{ [ "$1" != kimi ] || with_its_node "$dir/kimi/node_modules"; } ;;
	*)
		python=python3
		[ "$1" != fast-agent ] || python=$(newer "$1") || return
		$python -m venv "$dir/$1" && "$dir/$1/bin/python" -m pip install -q $list ;;
	esac && touch "$dir/$1/done"
}

missing=
for name; do
	[ -f "$dir/$name/done" ] || install "$name" || missing="$missing $name"
done
[ -z "$missing" ] || { echo "install.sh: not installed:$missing" >&2 && exit 1; }
