#!/bin/sh
# Installs the programs that others wrote and that tests use beside Go, into .cache and, for root on
# Debian, with apt-get: install.sh [--yes] tests|strangers
#
# It says first what it will install, and asks unless CI=true or --yes is given. Whatever cannot be
# installed is named; the tests that need it are skipped.
set -u
cd "$(dirname "$0")/../.."

yes=${CI:-}
[ "${1:-}" != --yes ] || { yes=true; shift; }
what=${1:-tests}

aimock=.cache/aimock/node_modules/@copilotkit/aimock/dist/cli.js
axe=.cache/axe/node_modules/axe-core/axe.min.js
mcp=.cache/mcp
agents=.cache/agents
python=.cache/python
published=.cache/published
litellm=.cache/litellm
mlflow=.cache/mlflow
npm_install() { npm install --silent --no-audit --no-fund --no-save --prefix "$@"; }

has() { command -v "$1" >/dev/null 2>&1; }

# missing lists the Debian packages that are not there, with what each is for.
missing() {
	has "${CC:-gcc}" || echo "gcc libc6-dev: the race detector"
	has chromium || echo "chromium: opens reports and pages"
	python3 -c 'import ensurepip' 2>/dev/null || echo "python3-venv: servers of tools and agents in Python"
	[ "$(uname)" != Linux ] || has bwrap || echo "bubblewrap: rooms for agents"
	has npm || echo "npm: servers of tools and agents in JavaScript"
	has prometheus || echo "prometheus: scrapes runs"
}

# plan lists everything that is not there.
plan() {
	missing | sed 's/^/  Debian  /'
	[ -f $aimock ] || echo "  npm     aimock, which mocks many providers, into .cache/aimock"
	[ -f $axe ] || echo "  npm     axe-core, which checks pages for accessibility, into .cache/axe"
	[ -f $mcp/done ] || echo "  both    seven MCP servers, into $mcp"
	[ -f $agents/tests ] || echo "  both    some agents, into $agents"
	if [ "$what" = strangers ]; then
		[ -f $python/done ] || echo "  PyPI    readers of our files (DuckDB, pandas, Inspect), into $python"
		[ -f $published/done ] || echo "  PyPI    validators of published results, for Python 3.12 or later, into $published"
		[ -f $litellm/done ] || echo "  PyPI    LiteLLM's proxy, into $litellm"
		[ -f $mlflow/done ] || echo "  PyPI    MLflow, into $mlflow"
		[ -f $agents/all ] || echo "  both    all agents and environments of the docs, 5 GB, into $agents"
	fi
}

consent() {
	list=$(plan)
	[ -n "$list" ] || return 1
	echo "The tests can use these programs, which are not installed:"
	echo "$list"
	[ "$yes" != true ] || return 0
	if [ ! -t 0 ]; then
		echo "Nothing is installed without a terminal: CI=true or tools/others/install.sh --yes agrees."
		return 1
	fi
	printf 'Install them? [y/N] '
	read -r answer
	case $answer in [yY]*) ;; *) return 1 ;; esac
}

packages() {
	names=$(missing | sed 's/:.*//')
	[ -n "$names" ] || return 0
	if has apt-get && [ "$(id -u)" = 0 ]; then
		apt-get update -qq
		for name in $names; do
			case $name in prometheus) set -- --no-install-recommends ;; *) set -- ;; esac
			apt-get install -y -qq "$@" "$name" >/dev/null
		done
	fi
	missing | sed 's/^/not installed: /'
}

tell() { "$@" || echo "not installed: $1"; }

install_aimock() { [ -f $aimock ] || npm_install .cache/aimock @copilotkit/aimock@1.43.0; }
install_axe() { [ -f $axe ] || npm_install .cache/axe axe-core@4.14.1; }
install_servers() {
	[ -f $mcp/done ] || {
		python3 -m venv $mcp/python &&
			$mcp/python/bin/python -m pip install -q 'mcp<2' mcp-server-sqlite==2025.4.25 \
				mcp-server-git==2026.10.10 mcp-server-time==2026.10.10 &&
			npm_install $mcp @modelcontextprotocol/server-everything@2026.8.31 \
				@modelcontextprotocol/server-filesystem@2026.8.31 \
				@modelcontextprotocol/server-memory@2026.8.31 \
				@modelcontextprotocol/server-sequential-thinking@2026.8.31 &&
			touch $mcp/done
	} || { rm -rf $mcp; return 1; }
}
install_agents() {
	[ -f $agents/tests ] || { examples/agents/install.sh $agents openai-agents langgraph npm && touch $agents/tests; }
}

# The programs of strangers take minutes to install.
install_readers() {
	[ -f $python/done ] || {
		python3 -m venv $python && $python/bin/python -m pip install -q duckdb==2.0.0 pandas==3.1.1 \
			pyarrow==26.0.1 inspect_ai==0.3.285 atif==1.8.0 && touch $python/done
	}
}
install_validators() {
	[ -f $published/done ] || {
		newer=$(for p in python3 python3.14 python3.13 python3.12; do
			$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $p && break
		done)
		[ -n "$newer" ] && $newer -m venv $published &&
			$published/bin/python -m pip install -q every-eval-ever==0.3.0 \
				huggingface_hub==1.33.0 && touch $published/done
	} || { rm -rf $published; return 1; }
}
install_litellm() {
	[ -f $litellm/done ] || {
		python3 -m venv $litellm && $litellm/bin/python -m pip install -q 'litellm[proxy]==1.106.2' &&
			touch $litellm/done
	}
}
install_mlflow() {
	[ -f $mlflow/done ] || {
		python3 -m venv $mlflow && $mlflow/bin/python -m pip install -q mlflow==3.17.2 && touch $mlflow/done
	}
}
install_all_agents() {
	[ -f $agents/all ] || {
		examples/agents/install.sh $agents
		agents_failed=$?
		examples/environments/install.sh && [ $agents_failed = 0 ] && touch $agents/all
	}
}

consent || exit 0
packages
tell install_aimock &
tell install_axe &
tell install_servers &
tell install_agents &
wait
if [ "$what" = strangers ]; then
	tell install_readers
	tell install_validators
	tell install_litellm
	tell install_mlflow
	tell install_all_agents
fi
exit 0
