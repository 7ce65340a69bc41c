#!/bin/sh
# Fetches the chart libraries with npm and puts their browser builds, without
# references to source maps, and the licences of all that they contain here.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --ignore-scripts --no-audit --no-fund vega@6.4.0 vega-lite@6.5.0 vega-embed@7.3.0 >/dev/null

for p in vega vega-lite vega-embed; do
	sed '/^\/\/# sourceMappingURL=/d' "node_modules/$p/build/$p.min.js" >"$here/$p.min.js"
done

# What is not listed here only serves the packages' command lines.
{
	echo "The charts of this report are drawn by vega, vega-lite and vega-embed, which contain"
	echo "the packages below."
	for p in vega vega-lite vega-embed vega-interpreter vega-schema-url-parser vega-themes vega-tooltip \
		$(cd node_modules && echo d3-*) delaunator fast-json-patch internmap json-stringify-pretty-compact \
		robust-predicates semver topojson-client tslib; do
		printf '\n== %s %s\n\n' "$p" "$(node -p "require('./node_modules/$p/package.json').version")"
		cat "node_modules/$p"/LICENSE*
	done
} | tr -d '\r' | sed 's/[[:space:]]*$//' >"$here/LICENSES.txt"
