#!/bin/sh
# Installs what the environments beside this file need, each in a folder with its own Python.
#
#     ./install.sh [bfcl] [agentdojo] [tau2] [echo]
set -eu
cd "$(dirname "$0")"
server='openenv==0.10.0 fastapi uvicorn websockets fastmcp<4 pydantic requests httpx jsonschema
        pyyaml typer rich openai gradio huggingface_hub tomli tomli-w'

python() { # folder
	[ -x "$1/bin/python" ] || python3 -m venv "$1"
}

for name in ${*:-bfcl agentdojo tau2 echo}; do
	python ".$name"
	pip=".$name/bin/python -m pip install -q"
	# shellcheck disable=SC2086 # lists of packages
	case $name in
	bfcl) # without the packages for running models, which take gigabytes
		$pip --no-deps bfcl-eval==2026.3.23
		$pip $server mpmath numpy filelock ;;
	agentdojo)
		$pip agentdojo==0.1.35
		$pip $server ;;
	tau2) # needs a checkout of sierra-research/tau2-bench, which TAU2 names
		$pip $server 'litellm>=1.80.15,<1.82.7' loguru deepdiff addict toml tabulate \
			docstring-parser pandas psutil tenacity python-dotenv ;;
	echo) # of OpenEnv's catalogue, which is not in the package index; OPENENV may name a checkout
		from=https://github.com/huggingface/OpenEnv/archive/refs/tags/v0.3.1.tar.gz
		from="$from#subdirectory=envs/echo_env"
		[ -z "${OPENENV:-}" ] || from="$OPENENV/envs/echo_env"
		$pip $server
		$pip --no-deps "$from" ;;
	*) echo "install.sh: unknown environment $name" >&2; exit 2 ;;
	esac
	echo "$name is installed"
done
